/** The items of a turn: what each entry shows, with Holdfast's own notes in the words of src/holdfast/core/notes.py. */

import type { About, CallState, EntryKind, EntryPicture } from "../wire.ts";
import { endsAttempt, field, firstSeq, type JournalEntry, textField } from "./entries.ts";
import type { CallItem, Item, MarkerItem, QuestionItem, TextItem } from "./view.ts";

export interface ItemsBuilder {
  items: Item[];
  /** The attempt whose text the last item can still take. */
  openAttempt: number | null;
  /** The interrupted attempts. */
  recoveries: ReadonlyMap<number, Recovery>;
  /** Returns the pictures of a message that joined this turn. */
  picturesOf: (turnId: string) => EntryPicture[];
}

/** Entries that belong to no attempt, and so are never recovered from one. */
const OUTSIDE_ATTEMPTS: ReadonlySet<EntryKind> = new Set(["turn.accepted", "message.joined", "context.compacted"]);
const SPEAKERS: ReadonlySet<unknown> = new Set(["system", "user", "assistant"]);
const OUTCOMES: readonly CallState[] = ["planned", "awaiting_approval", "started", "ok", "error", "unknown"];
const SUBJECTS: readonly About[] = ["answer", "approval", "budget"];

type Show = (builder: ItemsBuilder, entry: JournalEntry) => void;

const showNothing: Show = () => undefined;

/** How each kind of entry is shown. */
const SHOW_BY_KIND: Record<EntryKind, Show> = {
  text: (builder, entry) => addText(builder, entry, "assistant"),
  reasoning: (builder, entry) => addText(builder, entry, "reasoning"),
  "turn.accepted": addMessage,
  "message.joined": addJoinedMessage,
  "turn.revised": reviseMessage,
  "tool.started": (builder, entry) => add(builder, entry, callItem(builder, entry, null)),
  "tool.finished": finishCall,
  "approval.asked": (builder, entry) => add(builder, entry, questionItem(builder, entry)),
  "approval.answered": addAnswer,
  note: (builder, entry) => addNote(builder, entry, textField(entry, "banner") ? "banner" : "note"),
  "context.compacted": (builder, entry) => addNote(builder, entry, "compacted"),
  "turn.failed": (builder, entry) => addMarker(builder, entry, "failed"),
  "turn.cancelled": (builder, entry) => addMarker(builder, entry, "cancelled"),
  "turn.interrupted": (builder, entry) => addMarker(builder, entry, "interrupted"),
  "turn.started": showNothing,
  "turn.deferred": showNothing,
  "turn.completed": showNothing,
  "turn.recovered": showNothing,
  "turn.undone": showNothing,
  usage: showNothing,
};

/** Add what an entry shows.  An entry of a kind that a newer gateway wrote is shown as a note. */
export const showEntry: Show = (builder, entry) => {
  if (Object.hasOwn(SHOW_BY_KIND, entry.kind)) SHOW_BY_KIND[entry.kind](builder, entry);
  else addNote(builder, entry, "note");
};

function add(builder: ItemsBuilder, entry: JournalEntry, item: Item): void {
  builder.items.push(item);
  builder.openAttempt = entry.attempt;
}

/** Return the fields that every item has.  The key is the first entry's, so that it stays while the item grows. */
function commonFields({ recoveries }: ItemsBuilder, entry: JournalEntry) {
  const recovered = recoveries.has(entry.attempt) && !OUTSIDE_ATTEMPTS.has(entry.kind) && !endsAttempt(entry);
  return { key: String(firstSeq(entry)), at: entry.at, recovered };
}

/** Return the key of an item that takes an entry: the late entry may be the older one. */
const joinedKey = (item: Item, entry: JournalEntry) => String(Math.min(Number(item.key), firstSeq(entry)));

/** Text of one attempt is joined; text of the next attempt begins a new item. */
function addText(builder: ItemsBuilder, entry: JournalEntry, role: TextItem["role"]): void {
  const last = builder.items.at(-1);
  if (last?.role === role && builder.openAttempt === entry.attempt) {
    const key = joinedKey(last, entry);
    builder.items[builder.items.length - 1] = { ...last, key, text: last.text + textField(entry) };
  } else {
    add(builder, entry, { ...commonFields(builder, entry), role, text: textField(entry) });
  }
}

function addMessage(builder: ItemsBuilder, entry: JournalEntry): void {
  const plain = commonFields(builder, entry);
  for (const [index, outcomeField] of list(entry, "prior").filter(isPriorMessage).entries()) {
    builder.items.push({ ...plain, key: `${plain.key}.${index}`, role: "prior", ...outcomeField });
  }
  const images = list(entry, "images").filter(isPicture);
  const message = { text: textField(entry), images, turnId: entry.turn_id, joinedFrom: null };
  add(builder, entry, { ...plain, role: "user", ...message });
}

/** Let the message of the turn say what its sender changed it to. */
function reviseMessage(builder: ItemsBuilder, entry: JournalEntry): void {
  const text = textField(entry);
  builder.items = builder.items.map((item) =>
    item.role === "user" && item.joinedFrom === null ? { ...item, text } : item,
  );
}

function addJoinedMessage(builder: ItemsBuilder, entry: JournalEntry): void {
  const turnId = textField(entry, "turn_id");
  const message = { text: textField(entry), images: builder.picturesOf(turnId), turnId, joinedFrom: turnId };
  add(builder, entry, { ...commonFields(builder, entry), role: "user", ...message });
}

function callItem(
  builder: ItemsBuilder,
  entry: JournalEntry,
  ended: Pick<CallItem, "outcome" | "result"> | null,
): CallItem {
  return {
    ...commonFields(builder, entry),
    role: "tool",
    callId: textField(entry, "call_id"),
    name: textField(entry, "name"),
    args: field(entry, "args") ?? null,
    result: ended?.result ?? null,
    outcome: ended?.outcome ?? null,
    endedAt: ended ? entry.at : null,
  };
}

/** Put a result on its call.  A late result replaces the entry that said the outcome is unknown. */
function finishCall(builder: ItemsBuilder, entry: JournalEntry): void {
  const outcomeField = field(entry, "outcome");
  const outcome = OUTCOMES.find((each) => each === outcomeField) ?? "unknown";
  const result = field(entry, "result");
  const ended = { outcome, result: typeof result === "string" ? result : null };
  const callId = textField(entry, "call_id");
  for (let index = builder.items.length - 1; index >= 0; index -= 1) {
    const card = builder.items[index]!;
    if (card.role !== "tool" || card.callId !== callId) continue;
    if (card.outcome === null) {
      builder.items[index] = { ...card, ...ended, key: joinedKey(card, entry), endedAt: entry.at };
      return;
    }
    if (outcome === "unknown") return;
  }
  add(builder, entry, callItem(builder, entry, ended));
}

function questionItem(builder: ItemsBuilder, entry: JournalEntry): QuestionItem {
  const about = field(entry, "about");
  const detail = field(entry, "detail");
  const expiresAt = field(entry, "expires_at");
  return {
    ...commonFields(builder, entry),
    role: "question",
    questionId: textField(entry, "question_id"),
    about: SUBJECTS.find((each) => each === about) ?? "answer",
    text: textField(entry),
    choices: list(entry, "choices").filter((each) => typeof each === "string"),
    detail: typeof detail === "object" && detail !== null ? { ...detail } : {},
    expiresAt: typeof expiresAt === "number" ? expiresAt : null,
    callId: textField(entry, "call_id") || null,
    name: textField(entry, "name") || null,
    args: field(entry, "args") ?? null,
    answer: null,
    answeredAt: null,
  };
}

/** Put an answer on its question; without a question it is shown alone. */
function addAnswer(builder: ItemsBuilder, entry: JournalEntry): void {
  const questionId = textField(entry, "question_id");
  const index = builder.items.findLastIndex(
    (each) => each.role === "question" && each.questionId === questionId && each.answer === null,
  );
  const question = builder.items[index];
  const answered = { answer: textField(entry), answeredAt: entry.at };
  if (question?.role !== "question") {
    add(builder, entry, { ...questionItem(builder, entry), text: "", ...answered });
    return;
  }
  builder.items[index] = { ...question, key: joinedKey(question, entry), ...answered };
  // Text after an answer does not continue the text before it.
  builder.openAttempt = null;
}

function addNote(builder: ItemsBuilder, entry: JournalEntry, kind: "note" | "banner" | "compacted"): void {
  add(builder, entry, { ...commonFields(builder, entry), role: "note", kind, text: textField(entry) });
}

function addMarker(builder: ItemsBuilder, entry: JournalEntry, kind: MarkerItem["kind"]): void {
  const recovery = builder.recoveries.get(entry.attempt) ?? "nothing";
  const cause = textField(entry, "cause");
  const continues = field(entry, "continues") === true;
  const text = {
    failed: () => failed(textField(entry, "error")),
    cancelled: () => cancelled(cause),
    interrupted: () => interrupted(cause, recovery, textField(entry, "error")),
  }[kind]();
  add(builder, entry, { ...commonFields(builder, entry), role: "marker", kind, text, cause, continues, recovery });
}

function list(entry: JournalEntry, key: string): unknown[] {
  const found = field(entry, key);
  return Array.isArray(found) ? found : [];
}

function isPriorMessage(found: unknown): found is { speaker: string; text: string } {
  return isObject(found) && SPEAKERS.has(found.speaker) && typeof found.text === "string" && found.text !== "";
}

function isPicture(found: unknown): found is EntryPicture {
  return isObject(found) && typeof found.media_type === "string" && typeof found.bytes === "number";
}

const isObject = (found: unknown): found is Record<string, unknown> => typeof found === "object" && found !== null;

/** How much of a lost attempt was found. */
export type Recovery = "nothing" | "pending" | "output";

const OUTPUT_RECOVERED = "Its output was recovered from the run journal.";
/** If nothing was found, nothing is said: it may still arrive. */
const RECOVERY: Readonly<Record<Recovery, string>> = {
  nothing: "",
  pending: " Recovery of its output is pending.",
  output: ` ${OUTPUT_RECOVERED}`,
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

function interrupted(cause: string, recovery: Recovery, error: string): string {
  const reason = error ? ` It was ${error}` : "";
  const planned = INTERRUPTED.get(cause);
  return `${planned ?? `Interrupted: the gateway stopped without warning.${RECOVERY[recovery]}`}${reason}`;
}

const cancelled = (cause: string) => CANCELLATION.get(cause) ?? "Cancelled.";

const failed = (error: string) => (error ? `Failed: ${error}` : "Failed.");

/** The transcript says that output was recovered; a person wants to know that nothing is missing. */
export const markerText = ({ text }: MarkerItem) => text.replace(OUTPUT_RECOVERED, "Nothing you read was lost.");
