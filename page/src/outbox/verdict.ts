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

/** Judge why a message got no receipt: the gateway may have got it before this try, or with it. */
export function verdictOn(error: unknown, before: boolean, sent: boolean): Verdict {
  const again = { problem: "", retryAfterMs: null, turnId: null };
  const unknown: Verdict = { ...again, state: sent ? "unconfirmed" : "waiting" };
  // What this try came to says nothing about the one before.
  const passed: Verdict = { ...again, state: before ? "unconfirmed" : "waiting" };
  if (!(error instanceof Refused)) return unknown;
  if (PASSING.has(error.status)) return { ...passed, retryAfterMs: error.retryAfterMs };
  if (error.status >= 500) return unknown;
  if (error.status === CONFLICT && error.problem.turn_id) {
    return { ...again, state: "accepted", turnId: error.problem.turn_id };
  }
  // Somebody else had moved what it was about, at that very moment.
  if (error.status === CONFLICT && error.code === "stale") return passed;
  return { ...again, state: "refused", problem: told(error) };
}
