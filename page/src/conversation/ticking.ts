/** The time at the gateway, for what counts while it is looked at. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { gatewayTime } from "../clock.ts";

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
