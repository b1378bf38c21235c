/** How far a restart has come, as far as one can tell from outside. */

import type { Loaded } from "../../ui/load.ts";
import type { Status } from "../../wire.ts";

export type Step = "draining" | "away" | "back";

/** Return what a gateway is at that was told to begin anew, when `node` was its name; each start has another one. */
export function stepOf(node: string, { value, error }: Loaded<Status>): Step {
  if (value && value.node !== node && value.ready && error === undefined) return "back";
  return error === undefined && value?.node === node ? "draining" : "away";
}
