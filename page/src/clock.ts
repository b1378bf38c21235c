/** The clock of the gateway, by which everything is dated that happens there. */

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
