/** The view of a session: the types that the fold makes from journal entries. */

import type { About, CallState, EntryPicture, TurnState } from "../wire.ts";
import type { PersistentMap, TurnFold } from "./fold.ts";

/** Tokens and money; cost is in millionths of a dollar, and 0 where no price is known. */
export interface TokenUsage {
  model: string;
  input: number;
  output: number;
  cached: number;
  costMicros: number;
}

interface Common {
  /** Stays the same while the item grows, and is no other item's of its turn. */
  key: string;
  at: number;
  /** Shown by an attempt that never came to its end. */
  recovered: boolean;
}

/** What a person wrote.  With `joinedFrom` it came while the turn was running, and became a part of it. */
export interface MessageItem extends Common {
  role: "user";
  text: string;
  images: EntryPicture[];
  /** The turn whose pictures these are. */
  turnId: string;
  joinedFrom: string | null;
}

/** What a client says was said before its message. */
export interface PriorItem extends Common {
  role: "prior";
  speaker: string;
  text: string;
}

export interface TextItem extends Common {
  role: "assistant" | "reasoning";
  text: string;
}

/** One use of a tool.  Without an outcome it is running, or was never heard of again. */
export interface CallItem extends Common {
  role: "tool";
  callId: string;
  name: string;
  args: unknown;
  result: string | null;
  outcome: CallState | null;
  /** When it ended; together with `at` this is how long it took. */
  endedAt: number | null;
}

/** A question, with its answer as soon as there is one. */
export interface QuestionItem extends Common {
  role: "question";
  questionId: string;
  about: About;
  text: string;
  choices: string[];
  detail: Record<string, unknown>;
  expiresAt: number | null;
  callId: string | null;
  /** The name and arguments of the call that is asked about. */
  name: string | null;
  args: unknown;
  answer: string | null;
  answeredAt: number | null;
}

/** What Holdfast says in its own name.  A banner is about a stop; a summary stands for what is older. */
export interface NoteItem extends Common {
  role: "note";
  kind: "note" | "banner" | "compacted";
  text: string;
}

/** Why a turn, or one attempt of it, came to no answer.  With `continues` the next attempt went on by itself. */
export interface MarkerItem extends Common {
  role: "marker";
  kind: "interrupted" | "cancelled" | "failed";
  text: string;
  cause: string;
  continues: boolean;
  recovery: "nothing" | "pending" | "output";
}

export type Item = MessageItem | PriorItem | TextItem | CallItem | QuestionItem | NoteItem | MarkerItem;

/** A turn waits for its model. */
export interface Wait {
  /** Why the model could not answer. */
  error: string;
  retryAt: number;
}

/** One turn: a message, and everything that became of it. */
export interface Turn {
  id: string;
  /** Its place: the seq of its acceptance. */
  order: number;
  acceptedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  state: TurnState;
  attempt: number;
  /** It was cut off, and went on. */
  resumed: boolean;
  /** It was undone, or its message joined another turn: it shows nothing of its own. */
  hidden: boolean;
  error: string;
  cause: string;
  /** Set while it is in line because its model cannot answer. */
  wait: Wait | null;
  items: readonly Item[];
  used: TokenUsage;
}

/** Everything that is known of a session's journal.  A turn that did not change is the same object as before. */
export interface View {
  /** The highest number among its entries; no cursor, because older ones of other turns may be missing. */
  seq: number;
  turns: readonly Turn[];
  /** What the turns are made of, for the fold alone: with it, what comes later finds its place. */
  turnFolds: PersistentMap<TurnFold>;
}
