import { duration } from "../../format.ts";
import { now } from "../ticking.ts";

/** How long something has been going on, counting. */
export function Elapsed({ since }: { since: number }) {
  const passed = Math.max(0, now.value - since);
  // The clock of the gateway may be ahead; below a second there is nothing worth counting.
  return (
    <span class="elapsed">
      {passed < 1_000 ? "" : duration(Math.floor(passed / 1_000) * 1_000).replace(".0 s", " s")}
    </span>
  );
}
