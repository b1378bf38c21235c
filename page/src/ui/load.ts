/** Reading something from the gateway for a page: now, again on request, and now and then. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../api.ts";
import { whileVisible } from "./visible.ts";

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
}

/** What was read last, and what reads it again. */
export type Loading<T> = readonly [ReadonlySignal<Loaded<T>>, () => Promise<void>];

/** Keep what an address answers, read again every so often if that is given. */
export function useLoaded<T>(path: string, everyMs?: number): Loading<T> {
  const [loaded, look] = useMemo(() => loading(() => get<T>(path)), [path]);
  useEffect(() => {
    if (everyMs) return whileVisible(look, everyMs);
    look();
  }, [look, everyMs]);
  return [loaded, look];
}

/** Keep the last answer to something; it stays while it is asked for again, and also when that goes wrong. */
export function loading<T>(read: () => Promise<T>): Loading<T> {
  const loaded = signal<Loaded<T>>({ value: undefined, error: undefined });
  let asked = 0;
  let answered = 0;
  const take = (number: number, found: Loaded<T>) => {
    // An answer that was overtaken by a later one is old.
    if (number < answered) return;
    answered = number;
    loaded.value = found;
  };
  const look = async () => {
    const number = ++asked;
    try {
      take(number, { value: await read(), error: undefined });
    } catch (error) {
      take(number, { ...loaded.peek(), error });
    }
  };
  return [loaded, look];
}
