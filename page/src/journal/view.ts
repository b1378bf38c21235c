/** The view of a session: the types that the fold makes from journal entries. */

import type { About, CallState, EntryPicture, TurnState } from "../wire.ts";
import type { PersistentMap, TurnFold } from "./fold.ts";

/** Tokens and cost, in millionths of a dollar; 0 if no price is known. */
export interface TokenUsage {
  model: string;
  input: number;
  output: number;
  cached: number;
  costMicros: number;
}

interface Common {
  /** Unique within its turn, and constant while the item grows. */
  key: string;
  at: number;
  /** It comes from an attempt that was interrupted. */
  recovered: boolean;
}

/** A person's message.  With `joinedFrom` it came while the turn was running, and joined it. */
export interface MessageItem extends Common {
  role: "user";
  text: string;
  images: EntryPicture[];
  /** The turn that holds the pictures. */
  turnId: string;
  joinedFrom: string | null;
}

/** An earlier message, as told by an API client. */
export interface PriorItem extends Common {
  role: "prior";
  speaker: string;
  text: string;
}

export interface TextItem extends Common {
  role: "assistant" | "reasoning";
  text: string;
}

/** One tool call.  Without an outcome it is running, or was lost. */
export interface CallItem extends Common {
  role: "tool";
  callId: string;
  name: string;
  args: unknown;
  result: string | null;
  outcome: CallState | null;
  /** When it ended; with `at` this gives its duration. */
  endedAt: number | null;
}

/** A question, with its answer once there is one. */
export interface QuestionItem extends Common {
  role: "question";
  questionId: string;
  about: About;
  text: string;
  choices: string[];
  detail: Record<string, unknown>;
  expiresAt: number | null;
  callId: string | null;
  /** The tool and the arguments of the call that needs consent. */
  name: string | null;
  args: unknown;
  answer: string | null;
  answeredAt: number | null;
}

/** A note from Holdfast itself.  A banner is about a stop; a summary replaces older turns. */
export interface NoteItem extends Common {
  role: "note";
  kind: "note" | "banner" | "compacted";
  text: string;
}

/** Why a turn, or one attempt of it, gave no answer.  With `continues` the next attempt resumed by itself. */
export interface MarkerItem extends Common {
  role: "marker";
  kind: "interrupted" | "cancelled" | "failed";
  text: string;
  cause: string;
  continues: boolean;
  recovery: "nothing" | "pending" | "output";
}

export type Item = MessageItem | PriorItem | TextItem | CallItem | QuestionItem | NoteItem | MarkerItem;

/** A turn that waits for its model. */
export interface Wait {
  /** Why the model is unavailable. */
  error: string;
  retryAt: number;
}

/** One turn: a message and everything that followed from it. */
export interface Turn {
  id: string;
  /** Its position: the seq of its acceptance. */
  order: number;
  acceptedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  state: TurnState;
  attempt: number;
  /** It was interrupted, and resumed. */
  resumed: boolean;
  /** It was undone, or its message joined another turn: it shows nothing. */
  hidden: boolean;
  error: string;
  cause: string;
  /** Set while it is queued because its model is unavailable. */
  wait: Wait | null;
  items: readonly Item[];
  used: TokenUsage;
}

/** All loaded entries of a session.  A turn that did not change is the same object as before. */
export interface View {
  /** The highest entry number.  It is no cursor, because older entries of other turns may be missing. */
  seq: number;
  turns: readonly Turn[];
  /** The folds behind the turns, so that late entries find their place. */
  turnFolds: PersistentMap<TurnFold>;
}
