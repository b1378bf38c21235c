/** The time, for what counts while it is looked at. */

import { type ReadonlySignal, signal } from "@preact/signals";

const TICK_MS = 1_000;
let timer: ReturnType<typeof setInterval> | undefined;

const clock = signal(Date.now(), {
  watched() {
    this.value = Date.now();
    timer = setInterval(() => {
      clock.value = Date.now();
    }, TICK_MS);
  },
  unwatched() {
    clearInterval(timer);
  },
});

/** Moves on every second, for as long as somebody reads it. */
export const now: ReadonlySignal<number> = clock;
