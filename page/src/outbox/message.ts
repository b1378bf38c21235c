/** A message on its way to the gateway, and the states it can be in. */

import type { Busy, Me, Receipt } from "../wire.ts";

export interface Picture {
  media_type: string;
  /** As base64. */
  data: string;
  name: string;
}

export interface Opening {
  key: string;
  previous_session_id: string | null;
}

/** What a person wants to say.  Without a session it opens one, by a key that opens the same one however often. */
export interface NewMessage {
  sessionId: string | null;
  opening: Opening | null;
  text: string;
  images: Picture[];
  busy: Busy | null;
}

/** "unconfirmed" is when it was sent and no answer came; "refused" waits for its person. */
type OutgoingState = "waiting" | "sending" | "unconfirmed" | "accepted" | "refused";

export interface Outgoing extends NewMessage {
  /** Makes it one message, however often it is sent. */
  key: string;
  at: number;
  /** Who wrote it; null where nobody had ever signed in. */
  owner?: string | null;
  state: OutgoingState;
  /** When it became known that the gateway has it. */
  acceptedAt?: number;
  /** A tab has seen it in the journal. */
  arrived?: boolean;
  turnId: string | null;
  problem: string;
  /** What a command was answered with. */
  reply: string | null;
}

const SETTLED: ReadonlySet<OutgoingState> = new Set(["accepted", "refused"]);

/** Whether it still has to be sent. */
export const isDue = (item: Outgoing) => !SETTLED.has(item.state);

/** Whether a message is for the person to see who looks at the page now. */
export const isOwnedBy = (item: Outgoing, now: Me | null) => !item.owner || !now || item.owner === now.owner;

/** Return what a message must keep its order in: its session, or the one that it opens. */
export const queueOf = (item: Outgoing) => item.sessionId ?? item.opening?.key ?? "";

/** Return a message that the gateway has taken. */
export function accepted(item: Outgoing, receipt: Pick<Receipt, "turn_id" | "session_id" | "reply">): Outgoing {
  return {
    ...item,
    state: "accepted",
    acceptedAt: Date.now(),
    problem: "",
    turnId: receipt.turn_id || null,
    // A session that is over is followed by another, and that is where the answer will be.
    sessionId: receipt.session_id || item.sessionId,
    reply: receipt.reply ?? null,
  };
}
