/** What an attempt to send that came to no receipt means for the message. */

import { Refused, told } from "../api.ts";
import type { Outgoing } from "./message.ts";

/** Nothing was taken, and the same may be taken the next time: not signed in, too slow, too early, too often, not ready. */
const PASSING: ReadonlySet<number> = new Set([401, 408, 425, 429, 503]);
const CONFLICT = 409;

export type Verdict = Pick<Outgoing, "state" | "problem"> & {
  /** When to try again; null leaves it to the patience of whoever tries. */
  retryAfterMs: number | null;
  /** The turn that the message is already, if the gateway says so. */
  turnId: string | null;
};

/** Judge why a message got no receipt; `sent` says that the gateway may have got it. */
export function verdictOn(error: unknown, sent: boolean): Verdict {
  const again = { problem: "", retryAfterMs: null, turnId: null };
  const unknown: Verdict = { ...again, state: sent ? "unconfirmed" : "waiting" };
  if (!(error instanceof Refused)) return unknown;
  if (PASSING.has(error.status)) return { ...again, state: "waiting", retryAfterMs: error.retryAfterMs };
  if (error.status >= 500) return unknown;
  if (error.status === CONFLICT && error.problem.turn_id) {
    return { ...again, state: "accepted", turnId: error.problem.turn_id };
  }
  // Somebody else had moved what it was about, at that very moment.
  if (error.status === CONFLICT && error.code === "stale") return { ...again, state: "waiting" };
  return { ...again, state: "refused", problem: told(error) };
}
