/** What the journal shows, and which messages on their way have arrived by that. */

import { isDue, type Outgoing } from "./message.ts";

/** What was accepted so long ago is in its session, whether anybody has looked there or not. */
const STALE_MS = 3_600_000;
/** Turns that were seen lately: a journal can be faster than a receipt. */
const SEEN_MAX = 1_000;

/** A turn that the journal shows; with the text of its message if it has only just come. */
export interface Shown {
  id: string;
  sessionId: string;
  text: string | null;
}

const seen = new Set<string>();

export function see({ id }: Shown): void {
  seen.delete(id);
  seen.add(id);
  if (seen.size > SEEN_MAX) seen.delete(seen.values().next().value!);
}

/** Whether a message need not be kept any longer. */
export function hasArrived({ state, turnId, reply, at }: Outgoing): boolean {
  if (state !== "accepted") return false;
  if (Date.now() - at > STALE_MS) return true;
  return reply === null && (turnId === null || seen.has(turnId));
}

/** Return the message without a receipt that a turn most likely began with: it would be seen twice. */
export function twinOf(turn: Shown, items: readonly Outgoing[]): Outgoing | undefined {
  if (turn.text === null || items.some((each) => each.turnId === turn.id)) return undefined;
  const text = turn.text.trim();
  return items.find((each) => isDue(each) && each.sessionId === turn.sessionId && each.text.trim() === text);
}
