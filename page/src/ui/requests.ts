/** Requests of components: polling, the latest answer, one action at a time, and debounced input. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api.ts";

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
}

/** The latest answer, and the function that requests it again. */
type Loader<T> = readonly [ReadonlySignal<Loaded<T>>, () => Promise<void>];

/** Load a path, and poll it if an interval is given. */
export function useLoaded<T>(path: string, everyMs?: number): Loader<T> {
  const [loaded, reload] = useMemo(() => newLoader(() => get<T>(path)), [path]);
  useEffect(() => {
    if (everyMs) return whileVisible(reload, everyMs);
    reload();
  }, [reload, everyMs]);
  return [loaded, reload];
}

/** Keep the latest answer; it stays during a reload, and if that fails. */
export function newLoader<T>(read: () => Promise<T>): Loader<T> {
  const loaded = signal<Loaded<T>>({ value: undefined, error: undefined });
  let started = 0;
  let finished = 0;
  const settle = (number: number, found: Loaded<T>) => {
    // An answer that a later one overtook is dropped.
    if (number < finished) return;
    finished = number;
    loaded.value = found;
  };
  const reload = async () => {
    const number = ++started;
    try {
      settle(number, { value: await read(), error: undefined });
    } catch (error) {
      settle(number, { ...loaded.peek(), error });
    }
  };
  return [loaded, reload];
}

/**
 * Run an action now, at an interval while the page is visible, and when it becomes visible again; never twice at once.
 */
export function whileVisible(act: () => Promise<void>, everyMs: number): () => void {
  let isBusy = false;
  const again = async () => {
    if (isBusy) return;
    isBusy = true;
    await act().finally(() => {
      isBusy = false;
    });
  };
  const unlessHidden = () => document.hidden || again();
  again();
  const timer = setInterval(unlessHidden, everyMs);
  document.addEventListener("visibilitychange", unlessHidden);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", unlessHidden);
  };
}

interface Action {
  busy: ReadonlySignal<boolean>;
  /** The error of the last run; undefined if it succeeded. */
  problem: ReadonlySignal<unknown>;
  /** Run an action unless one is running.  Returns undefined then, and on an error. */
  run<T>(action: () => Promise<T>): Promise<T | undefined>;
  /** Clear the error. */
  clearProblem(): void;
}

export const useAction = (): Action => useMemo(newAction, []);

export function newAction(): Action {
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
  return { busy, problem, run, clearProblem: forget };
}

const PAUSE_MS = 250;

/** Return a text as it was at the last pause in typing. */
export function useDebounced(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
