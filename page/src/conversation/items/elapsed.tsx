import { duration } from "../../format.ts";
import { now } from "../ticking.ts";

const MINUTE_MS = 60_000;

/** How long something has been going on, counting. */
export function Elapsed({ since }: { since: number }) {
  // The clock of the gateway may be ahead of this one.
  const passed = Math.max(0, now.value - since);
  return <span class="elapsed">{passed < 1_000 ? "" : counted(passed)}</span>;
}

const counted = (ms: number) => (ms < MINUTE_MS ? `${Math.floor(ms / 1_000)} s` : duration(ms));
