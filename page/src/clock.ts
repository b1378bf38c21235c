/** The gateway's clock, which dates everything that happens there. */

import { type ReadonlySignal, signal } from "@preact/signals";

/** It is told in whole seconds, and takes a moment to come: clocks that differ by less are the same. */
const SAME_MS = 5_000;

let aheadMs = 0;

/** Take the time that an answer was given at. */
export function setClock(told: string | null): void {
  const ahead = Date.parse(told ?? "") - Date.now();
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) > SAME_MS ? ahead : 0;
}

/** Return what time it is at the gateway; the clock of this machine may be another one. */
export const gatewayTime = () => Date.now() + aheadMs;

const TICK_MS = 1_000;
let timer: ReturnType<typeof setInterval> | undefined;

const clock = signal(gatewayTime(), {
  watched() {
    this.value = gatewayTime();
    timer = setInterval(() => {
      clock.value = gatewayTime();
    }, TICK_MS);
  },
  unwatched() {
    clearInterval(timer);
  },
});

/** Moves on every second, for as long as somebody reads it. */
export const now: ReadonlySignal<number> = clock;
