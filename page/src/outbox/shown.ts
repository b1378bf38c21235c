/** What the journal shows, and which messages on their way have arrived by that. */

import type { Outgoing } from "./message.ts";

/** What was accepted so long ago is in its session, whether anybody has looked there or not. */
const STALE_MS = 3_600_000;
/** Turns that were seen lately: a journal can be faster than a receipt. */
const SEEN_MAX = 1_000;

/** A turn that the journal shows, with the key that its message was sent with. */
export interface Shown {
  id: string;
  key: string;
}

const seen = new Set<string>();

export function see({ id, key }: Shown): void {
  for (const each of key ? [id, key] : [id]) {
    seen.delete(each);
    seen.add(each);
  }
  while (seen.size > 2 * SEEN_MAX) seen.delete(seen.values().next().value!);
}

/** Whether a message need not be kept any longer: the journal says the same as a receipt, and is often there before it. */
export function hasArrived({ key, state, turnId, reply, at }: Outgoing): boolean {
  if (seen.has(key)) return true;
  if (state !== "accepted") return false;
  if (Date.now() - at > STALE_MS) return true;
  return reply === null && (turnId === null || seen.has(turnId));
}
