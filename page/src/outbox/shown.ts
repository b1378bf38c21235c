/** What the journal shows, and which messages on their way have arrived by that. */

import type { Outgoing } from "./message.ts";

/** What was accepted so long ago is in its session, whether anybody has looked there or not. */
const STALE_MS = 3_600_000;
/** So long after its acceptance the other tabs have seen a message in the journal as well. */
const OTHERS_MS = 60_000;
/** Turns that were seen lately: a journal can be faster than a receipt. */
const SEEN_MAX = 1_000;

/** A turn that the journal shows, with the key that its message was sent with. */
export interface Shown {
  id: string;
  key: string;
}

/** The turns, by their ids and by the keys of their messages. */
const seen = new Map<string, string>();

export function see({ id, key }: Shown): void {
  for (const name of key ? [id, key] : [id]) {
    seen.delete(name);
    seen.set(name, id);
  }
  while (seen.size > 2 * SEEN_MAX) seen.delete(seen.keys().next().value!);
}

/** Return the turn that a message has become, if the journal shows it. */
export const turnOf = ({ key }: Outgoing) => seen.get(key);

/** Whether a message is to be seen in its session: the journal says the same as a receipt, and is often there before it. */
export function hasArrived(item: Outgoing): boolean {
  const { key, state, turnId, reply } = item;
  if (seen.has(key)) return true;
  if (state !== "accepted") return false;
  return age(item) > STALE_MS || (reply === null && (turnId === null || seen.has(turnId)));
}

/** Whether no tab needs a message any longer that has arrived: each shows it until its own journal does. */
export const isSpent = (item: Outgoing) => age(item) > OTHERS_MS;

const age = ({ acceptedAt, at }: Outgoing) => Date.now() - (acceptedAt ?? at);
