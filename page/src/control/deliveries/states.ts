/** What the states of a delivery are called, and what each means. */

import type { Tone } from "../../ui/parts.tsx";
import type { Delivery, DeliveryState } from "../../wire.ts";

interface Meaning {
  word: string;
  tone: Tone;
  said: string;
}

export const MEANINGS: Record<DeliveryState, Meaning> = {
  pending: { word: "Waiting", tone: "plain", said: "It is kept, and will be sent." },
  sending: { word: "Sending", tone: "busy", said: "It is being handed over right now." },
  retry: {
    word: "Trying again",
    tone: "busy",
    said: "The far side said no, or could not be reached, and certainly does not have it. It is tried again by itself.",
  },
  unknown: {
    word: "Unconfirmed",
    tone: "note",
    said:
      "It was handed over, but no confirmation came back: it may have arrived or not, and nobody here can know. " +
      "Where the far side can be asked, it is asked; else it is sent once more, marked as a possible repeat, and never again.",
  },
  delivered: { word: "Delivered", tone: "good", said: "The far side has confirmed that it has it." },
  failed: {
    word: "Failed",
    tone: "bad",
    said: "It was given up, because the far side refuses it for good or too many tries went wrong. You can send it again.",
  },
  expired: {
    word: "Expired",
    tone: "bad",
    said: "It could not be sent while it was still of use, and was given up. You can send it again.",
  },
};

const REPEATED =
  "No confirmation came back, so it was sent once more, marked as a possible repeat; none came back for that either. " +
  "It may have arrived, and is not sent again.";

/** Return what the state of a delivery means for it. */
export function meaning({ state = "pending", repeats = 0 }: Delivery): string {
  return state === "unknown" && repeats > 0 ? REPEATED : MEANINGS[state].said;
}

/** Whether nobody will try any more unless a person wants it. */
export const isGivenUp = (delivery: Delivery) => delivery.state === "failed" || delivery.state === "expired";

/** What a turn sends while it is at work is numbered from here on downwards. */
const ASIDE_LAST = -1_000_001;

/** Return what a delivery is of its turn. */
export function partOf({ part }: Delivery): string {
  if (part > 0) return `Part ${part} of the answer`;
  return part > ASIDE_LAST ? "Notice about a stop" : "Sent while at work";
}

/** Return when it is tried next; null where it is not. */
export function nextTry(delivery: Delivery): number | null {
  const { state = "pending", repeats = 0, due_at } = delivery;
  const waits = state === "pending" || state === "retry" || (state === "unknown" && repeats === 0);
  return waits ? due_at : null;
}
