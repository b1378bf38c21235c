/** Reading something from the gateway for a page: now, again on request, and now and then. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../api.ts";

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
}

/** Keep what an address answers; the last answer stays while it is asked for again, and also when that goes wrong. */
export function useLoaded<T>(path: string | null, everyMs?: number): [ReadonlySignal<Loaded<T>>, () => Promise<void>] {
  const [state, look] = useMemo(() => {
    const state = signal<Loaded<T>>({ value: undefined, error: undefined });
    const look = async () => {
      if (path === null) return;
      try {
        state.value = { value: await get<T>(path), error: undefined };
      } catch (error) {
        state.value = { ...state.value, error };
      }
    };
    return [state, look] as const;
  }, [path]);
  useEffect(() => {
    look();
    if (!everyMs) return;
    const timer = setInterval(() => document.hidden || look(), everyMs);
    return () => clearInterval(timer);
  }, [look, everyMs]);
  return [state, look];
}
