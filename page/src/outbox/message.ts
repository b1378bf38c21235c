/** A message on its way to the gateway, and the states it can be in. */

import type { Busy, Me, Receipt } from "../wire.ts";

export interface OutgoingPicture {
  media_type: string;
  /** As base64. */
  data: string;
  name: string;
}

export interface Opening {
  key: string;
  previous_session_id: string | null;
}

/** A message to be sent.  Without a session it opens one, by an idempotent key. */
export interface NewMessage {
  sessionId: string | null;
  opening: Opening | null;
  text: string;
  images: OutgoingPicture[];
  busy: Busy | null;
}

/** "unconfirmed": sent, but no answer came; "refused": the person has to decide. */
type OutgoingState = "waiting" | "sending" | "unconfirmed" | "accepted" | "refused";

export interface Outgoing extends NewMessage {
  /** The idempotency key: sending it again is safe. */
  key: string;
  at: number;
  /** Who wrote it; null if no one had signed in yet. */
  owner?: string | null;
  state: OutgoingState;
  /** When the gateway was known to have it. */
  acceptedAt?: number;
  /** A tab has seen it in the journal. */
  arrived?: boolean;
  turnId: string | null;
  problem: string;
  /** The reply to a command. */
  reply: string | null;
}

const SETTLED: ReadonlySet<OutgoingState> = new Set(["accepted", "refused"]);

/** Whether it still has to be sent. */
export const isDue = (item: Outgoing) => !SETTLED.has(item.state);

/** Whether a message may be shown to this person. */
export const isOwnedBy = (item: Outgoing, now: Me | null) => !item.owner || !now || item.owner === now.owner;

/** Return the queue that keeps a message in order: its session, or the one it opens. */
export const queueOf = (item: Outgoing) => item.sessionId ?? item.opening?.key ?? "";

/** Return a message as accepted by the gateway. */
export function accepted(item: Outgoing, receipt: Pick<Receipt, "turn_id" | "session_id" | "reply">): Outgoing {
  return {
    ...item,
    state: "accepted",
    acceptedAt: Date.now(),
    problem: "",
    turnId: receipt.turn_id || null,
    // A session that has ended is followed by another, where the answer will be.
    sessionId: receipt.session_id || item.sessionId,
    reply: receipt.reply ?? null,
  };
}
