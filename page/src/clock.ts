/** The gateway's clock, which dates everything that happens there. */

import { type ReadonlySignal, signal } from "@preact/signals";

/** The gateway tells its time in whole seconds, and the answer takes a moment, so smaller differences mean nothing. */
const TOLERANCE_MS = 5_000;

let aheadMs = 0;

/** Set the gateway's time from the Date header of an answer. */
export function setClock(dateHeader: string | null): void {
  const ahead = Date.parse(dateHeader ?? "") - Date.now();
  if (!Number.isNaN(ahead)) aheadMs = Math.abs(ahead) > TOLERANCE_MS ? ahead : 0;
}

/** Return the gateway's time, which may differ from the time of this machine. */
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

/** Updated every second while a component reads it. */
export const now: ReadonlySignal<number> = clock;
