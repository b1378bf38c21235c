/** Journal entries: parsed as they arrive, sorted into a log per turn, and put in the order in which they are read. */

import type { EntryKind } from "../wire.ts";
import type { Recovery } from "./items.ts";

/** One entry; with `since`, all entries from that one up to `seq`.  Its data is checked when it is shown. */
export interface JournalEntry {
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: EntryKind;
  at: number;
  data: object;
  since?: number;
}

/** Return the number of the first entry that this one stands for. */
export const firstSeq = (entry: JournalEntry) => entry.since ?? entry.seq;

/** Return a text field; empty if an older version or a damaged disk left something else there. */
export function textField(entry: JournalEntry, key = "text"): string {
  const value = field(entry, key);
  return typeof value === "string" ? value : "";
}

export const field = (entry: JournalEntry, key: string): unknown => Reflect.get(entry.data, key);

export function numberField(entry: JournalEntry, key: string): number {
  const value = field(entry, key);
  return typeof value === "number" ? value : 0;
}

export const endsAttempt = (entry: JournalEntry) => ATTEMPT_ENDS.has(entry.kind);

/** The entries that end an attempt. */
const ATTEMPT_ENDS: ReadonlySet<EntryKind> = new Set([
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "turn.interrupted",
]);

/** Return the entry of a stream event; null if it is malformed. */
export function parseEntry(text: string): JournalEntry | null {
  try {
    const found: unknown = JSON.parse(text);
    return isEntry(found) ? found : null;
  } catch {
    return null;
  }
}

function isEntry(found: unknown): found is JournalEntry {
  if (typeof found !== "object" || found === null) return false;
  const has = (key: string, type: string) => typeof Reflect.get(found, key) === type;
  const named = has("turn_id", "string") && has("kind", "string");
  const placed = has("seq", "number") && has("attempt", "number");
  return named && placed && has("data", "object") && Reflect.get(found, "data") !== null;
}

/** Return how many leading items meet a condition, by binary search. */
export function countLeading<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Log {
  readonly shared: JournalEntry[];
  readonly length: number;
}

export const newLog = (entry: JournalEntry): Log => ({ shared: [entry], length: 1 });

export const entriesOf = (log: Log): readonly JournalEntry[] =>
  log.shared.length === log.length ? log.shared : log.shared.slice(0, log.length);

/** Whether an entry comes after all others. */
export const isAfterLog = (log: Log, entry: JournalEntry) => firstSeq(entry) > log.shared[log.length - 1]!.seq;

/** Return the log with an entry added; the same log if it holds all of the entry already. */
export function insertEntry(log: Log, entry: JournalEntry): Log {
  if (isAfterLog(log, entry)) return append(log, entry);
  const entries = entriesOf(log);
  const at = countLeading(entries, (each) => each.seq < firstSeq(entry));
  if (covers(entries, at, entry)) return log;
  // Runs are joined from their start, so a longer one covers the others.
  let behind = at;
  while (behind < entries.length && entries[behind]!.seq <= entry.seq) behind += 1;
  const shared = entries.toSpliced(at, behind - at, entry);
  return { shared, length: shared.length };
}

/** Most entries are appended, which must not cost more in a longer turn. */
function append(log: Log, entry: JournalEntry): Log {
  const shared = log.shared.length === log.length ? log.shared : log.shared.slice(0, log.length);
  shared.push(entry);
  return { shared, length: shared.length };
}

/** Whether the entries from an index on cover all of this one. */
function covers(entries: readonly JournalEntry[], from: number, entry: JournalEntry): boolean {
  let missing = firstSeq(entry);
  for (let at = from; at < entries.length && firstSeq(entries[at]!) <= missing; at += 1) missing = entries[at]!.seq + 1;
  return missing > entry.seq;
}

/** The attempts of a turn that have ended: later entries of their workers are late. */
export type EndedAttempts = Set<number>;

/** Whether an entry arrived after the end of its attempt. */
export const isLate = (ended: EndedAttempts, entry: JournalEntry) =>
  !endsAttempt(entry) && entry.nth !== null && ended.has(entry.attempt);

/** Return the entries of a turn in reading order. */
export function inReadingOrder(entries: readonly JournalEntry[]): readonly JournalEntry[] {
  const ended: EndedAttempts = new Set();
  const placed: JournalEntry[] = [];
  const late: JournalEntry[] = [];
  for (const entry of entries) {
    if (endsAttempt(entry)) ended.add(entry.attempt);
    (isLate(ended, entry) ? late : placed).push(entry);
  }
  return late.length ? putBack(placed, late) : placed;
}

/** Whether a worker wrote one entry before another. */
function isBefore(one: JournalEntry, other: JournalEntry): boolean {
  return one.attempt === other.attempt ? one.nth! < other.nth! : one.attempt < other.attempt;
}

/** Return the entries with each late one after the last that its worker wrote before it. */
function putBack(placed: readonly JournalEntry[], late: readonly JournalEntry[]): readonly JournalEntry[] {
  const numbered = placed.flatMap((entry, index) => (entry.nth === null ? [] : [{ entry, index }]));
  const below = new Map<number, JournalEntry[]>();
  for (const entry of late.toSorted((one, other) => one.attempt - other.attempt || one.nth! - other.nth!)) {
    const before = countLeading(numbered, (each) => isBefore(each.entry, entry));
    // Without an earlier entry, it follows the acceptance, which begins every turn.
    const place = before ? numbered[before - 1]!.index : 0;
    const after = below.get(place);
    if (after) after.push(entry);
    else below.set(place, [entry]);
  }
  return placed.flatMap((entry, index) => [entry, ...(below.get(index) ?? [])]);
}

/** The output of an agent, which is recovered after its worker is lost. */
const OUTPUT: ReadonlySet<EntryKind> = new Set(["text", "reasoning", "tool.started", "tool.finished"]);

/** Return how much output was recovered of each interrupted attempt. */
export function recoveries(entries: readonly JournalEntry[]): ReadonlyMap<number, Recovery> {
  const attempts = (kinds: ReadonlySet<EntryKind>) =>
    new Set(entries.filter((each) => kinds.has(each.kind)).map((each) => each.attempt));
  const cut = entries.filter((each) => each.kind === "turn.interrupted");
  if (cut.length === 0) return new Map();
  const resolved = attempts(new Set(["turn.recovered"]));
  const withOutput = attempts(OUTPUT);
  return new Map(
    cut.map((entry) => {
      const pending = !resolved.has(entry.attempt) && field(entry, "recovery") === "pending";
      return [entry.attempt, pending ? "pending" : withOutput.has(entry.attempt) ? "output" : "nothing"];
    }),
  );
}
