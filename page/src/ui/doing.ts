/** Something that is being done with the gateway: one thing at a time, and what went wrong with the last one. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

export interface Doing {
  busy: ReadonlySignal<boolean>;
  /** What went wrong; undefined where nothing did. */
  problem: ReadonlySignal<unknown>;
  /** Do something, unless something is being done.  Returns undefined then, and when it goes wrong. */
  run<T>(action: () => Promise<T>): Promise<T | undefined>;
  /** Let what went wrong be over. */
  forget(): void;
}

export const useDoing = (): Doing => useMemo(newDoing, []);

export function newDoing(): Doing {
  const busy = signal(false);
  const problem = signal<unknown>(undefined);
  const forget = () => {
    problem.value = undefined;
  };
  const run = async <T>(action: () => Promise<T>) => {
    if (busy.peek()) return undefined;
    busy.value = true;
    forget();
    try {
      return await action();
    } catch (error) {
      problem.value = error;
      return undefined;
    } finally {
      busy.value = false;
    }
  };
  return { busy, problem, run, forget };
}
