/** What a reader has opened or begun to write stays so while its row is out of sight, where it is not drawn. */

import { useState } from "preact/hooks";

/** The oldest are forgotten first. */
const MOST = 1_000;
const remembered = new Map<string, unknown>();

/** A state that outlives its component.  The name says whose it is, and is always used with the same type. */
export function useRemembered<T>(name: string, initial: T): [T, (value: T) => void] {
  const [, redraw] = useState(0);
  // The name stands for the type: whoever reads it is the one who wrote it.
  const value = remembered.has(name) ? (remembered.get(name) as T) : initial;
  const set = (next: T) => {
    remembered.delete(name);
    if (next !== initial) remembered.set(name, next);
    if (remembered.size > MOST) remembered.delete([...remembered.keys()][0]!);
    redraw((count) => count + 1);
  };
  return [value, set];
}
