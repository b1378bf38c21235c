/** The items of a turn: what each entry shows, with Holdfast's own notes in the words of src/holdfast/core/notes.py. */

import type { About, CallState, EntryKind, EntryPicture } from "../wire.ts";
import { given, isClosing, type Journalled, sinceOf, textOf } from "./entries.ts";
import type { CallItem, Item, MarkerItem, QuestionItem, WordsItem } from "./view.ts";

export interface Making {
  items: Item[];
  /** The attempt whose words the last item can still take. */
  speaking: number | null;
  /** The attempts that were interrupted. */
  lost: ReadonlyMap<number, Recovery>;
  /** The pictures that came with a message of another turn, which joined this one. */
  picturesOf: (turnId: string) => EntryPicture[];
}

/** What no attempt brought forth, so none can have left it behind. */
const LASTING: ReadonlySet<EntryKind> = new Set(["turn.accepted", "message.joined", "context.compacted"]);
const SPEAKERS: ReadonlySet<unknown> = new Set(["system", "user", "assistant"]);
const OUTCOMES: readonly CallState[] = ["planned", "awaiting_approval", "started", "ok", "error", "unknown"];
const SUBJECTS: readonly About[] = ["answer", "approval", "budget"];

type Show = (making: Making, entry: Journalled) => void;

/** How each kind of entry shows; what is not here shows nothing. */
const SHOWN: Partial<Record<EntryKind, Show>> = {
  text: (making, entry) => speak(making, entry, "assistant"),
  reasoning: (making, entry) => speak(making, entry, "reasoning"),
  "turn.accepted": accept,
  "message.joined": join,
  "tool.started": (making, entry) => add(making, entry, call(making, entry, null)),
  "tool.finished": finish,
  "approval.asked": (making, entry) => add(making, entry, question(making, entry)),
  "approval.answered": answer,
  note: (making, entry) => note(making, entry, textOf(entry, "banner") ? "banner" : "note"),
  "context.compacted": (making, entry) => note(making, entry, "compacted"),
  "turn.failed": (making, entry) => mark(making, entry, "failed"),
  "turn.cancelled": (making, entry) => mark(making, entry, "cancelled"),
  "turn.interrupted": (making, entry) => mark(making, entry, "interrupted"),
};

/** Add what an entry shows. */
export const show: Show = (making, entry) => SHOWN[entry.kind]?.(making, entry);

function add(making: Making, entry: Journalled, item: Item): void {
  making.items.push(item);
  making.speaking = entry.attempt;
}

/** Return what every item has.  Its first entry names it, because that one it keeps while it grows. */
function base({ lost }: Making, entry: Journalled) {
  const recovered = lost.has(entry.attempt) && !LASTING.has(entry.kind) && !isClosing(entry);
  return { key: String(sinceOf(entry)), at: entry.at, recovered };
}

/** Return the name of an item that an entry becomes a part of: an entry that was put back may be the older one. */
const joinedKey = (item: Item, entry: Journalled) => String(Math.min(Number(item.key), sinceOf(entry)));

/** Words of one attempt run on; those of the next begin anew. */
function speak(making: Making, entry: Journalled, role: WordsItem["role"]): void {
  const last = making.items.at(-1);
  if (last?.role === role && making.speaking === entry.attempt) {
    const key = joinedKey(last, entry);
    making.items[making.items.length - 1] = { ...last, key, text: last.text + textOf(entry) };
  } else {
    add(making, entry, { ...base(making, entry), role, text: textOf(entry) });
  }
}

function accept(making: Making, entry: Journalled): void {
  const plain = base(making, entry);
  for (const [index, said] of list(entry, "prior").filter(isSaid).entries()) {
    making.items.push({ ...plain, key: `${plain.key}.${index}`, role: "prior", ...said });
  }
  const images = list(entry, "images").filter(isPicture);
  const message = { text: textOf(entry), images, turnId: entry.turn_id, joinedFrom: null };
  add(making, entry, { ...plain, role: "user", ...message });
}

function join(making: Making, entry: Journalled): void {
  const turnId = textOf(entry, "turn_id");
  const message = { text: textOf(entry), images: making.picturesOf(turnId), turnId, joinedFrom: turnId };
  add(making, entry, { ...base(making, entry), role: "user", ...message });
}

function call(making: Making, entry: Journalled, ended: Pick<CallItem, "outcome" | "result"> | null): CallItem {
  return {
    ...base(making, entry),
    role: "tool",
    callId: textOf(entry, "call_id"),
    name: textOf(entry, "name"),
    args: given(entry, "args") ?? null,
    result: ended?.result ?? null,
    outcome: ended?.outcome ?? null,
    endedAt: ended ? entry.at : null,
  };
}

/** Put a result on the card of its call.  One that arrived late stands above the entry that says nobody knows it. */
function finish(making: Making, entry: Journalled): void {
  const said = given(entry, "outcome");
  const outcome = OUTCOMES.find((each) => each === said) ?? "unknown";
  const result = given(entry, "result");
  const ended = { outcome, result: typeof result === "string" ? result : null };
  const callId = textOf(entry, "call_id");
  for (let index = making.items.length - 1; index >= 0; index -= 1) {
    const card = making.items[index]!;
    if (card.role !== "tool" || card.callId !== callId) continue;
    if (card.outcome === null) {
      making.items[index] = { ...card, ...ended, key: joinedKey(card, entry), endedAt: entry.at };
      return;
    }
    if (outcome === "unknown") return;
  }
  add(making, entry, call(making, entry, ended));
}

function question(making: Making, entry: Journalled): QuestionItem {
  const about = given(entry, "about");
  const detail = given(entry, "detail");
  const expiresAt = given(entry, "expires_at");
  return {
    ...base(making, entry),
    role: "question",
    questionId: textOf(entry, "question_id"),
    about: SUBJECTS.find((each) => each === about) ?? "answer",
    text: textOf(entry),
    choices: list(entry, "choices").filter((each) => typeof each === "string"),
    detail: typeof detail === "object" && detail !== null ? { ...detail } : {},
    expiresAt: typeof expiresAt === "number" ? expiresAt : null,
    callId: textOf(entry, "call_id") || null,
    name: textOf(entry, "name") || null,
    args: given(entry, "args") ?? null,
    answer: null,
    answeredAt: null,
  };
}

/** Put an answer to its question; one without a question stands for itself. */
function answer(making: Making, entry: Journalled): void {
  const questionId = textOf(entry, "question_id");
  const index = making.items.findLastIndex(
    (each) => each.role === "question" && each.questionId === questionId && each.answer === null,
  );
  const asked = making.items[index];
  const answered = { answer: textOf(entry), answeredAt: entry.at };
  if (asked?.role !== "question") {
    add(making, entry, { ...question(making, entry), text: "", ...answered });
    return;
  }
  making.items[index] = { ...asked, key: joinedKey(asked, entry), ...answered };
  // What is said after an answer does not run into what was said before it.
  making.speaking = null;
}

function note(making: Making, entry: Journalled, kind: "note" | "banner" | "compacted"): void {
  add(making, entry, { ...base(making, entry), role: "note", kind, text: textOf(entry) });
}

function mark(making: Making, entry: Journalled, kind: MarkerItem["kind"]): void {
  const recovery = making.lost.get(entry.attempt) ?? "nothing";
  const cause = textOf(entry, "cause");
  const continues = given(entry, "continues") === true;
  const text = {
    failed: () => failed(textOf(entry, "error")),
    cancelled: () => cancelled(cause),
    interrupted: () => interrupted(cause, recovery, textOf(entry, "error")),
  }[kind]();
  add(making, entry, { ...base(making, entry), role: "marker", kind, text, cause, continues, recovery });
}

function list(entry: Journalled, key: string): unknown[] {
  const found = given(entry, key);
  return Array.isArray(found) ? found : [];
}

function isSaid(found: unknown): found is { speaker: string; text: string } {
  return isObject(found) && SPEAKERS.has(found.speaker) && typeof found.text === "string" && found.text !== "";
}

function isPicture(found: unknown): found is EntryPicture {
  return isObject(found) && typeof found.media_type === "string" && typeof found.bytes === "number";
}

const isObject = (found: unknown): found is Record<string, unknown> => typeof found === "object" && found !== null;

/** How much of a lost attempt has been found. */
export type Recovery = "nothing" | "pending" | "output";

/** Nothing found is nothing said: what is not there now may still arrive. */
const RECOVERY: Readonly<Record<Recovery, string>> = {
  nothing: "",
  pending: " Recovery of its output is pending.",
  output: " Its output was recovered from the run journal.",
};
const INTERRUPTED = new Map([
  ["restart_timeout", "Interrupted by a gateway restart."],
  ["shutdown_timeout", "Interrupted by a gateway shutdown."],
  ["disk_full", "Interrupted: the disk was full."],
]);
const CANCELLATION = new Map([
  ["superseded", "Cancelled: a newer message took its place."],
  ["session_ended", "Cancelled: the session was ended."],
  ["session_suspended", "Cancelled: the session was suspended."],
]);

export function interrupted(cause: string, recovery: Recovery, error: string): string {
  const reason = error ? ` It was ${error}` : "";
  const planned = INTERRUPTED.get(cause);
  return `${planned ?? `Interrupted: the gateway stopped without warning.${RECOVERY[recovery]}`}${reason}`;
}

export const cancelled = (cause: string) => CANCELLATION.get(cause) ?? "Cancelled.";

export const failed = (error: string) => (error ? `Failed: ${error}` : "Failed.");
