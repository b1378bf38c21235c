/** Journals as a store could hold them: concurrent turns, interrupted, resumed, asked, joined, undone and late. */

import fc from "fast-check";
import { firstSeq, type JournalEntry, textField } from "../../src/journal/entries.ts";
import type { EntryKind } from "../../src/wire.ts";

type Unnumbered = Omit<JournalEntry, "seq">;
type Step = (typeof STEPS)[number];
type Fate = (typeof FATES)[number];
type End = (typeof ENDS)[number];

const STEPS = ["text", "text", "text", "reasoning", "note", "tool", "result", "usage"] as const;
const FATES = ["parked", "interrupted", "continued", "deferred"] as const;
const ENDS = ["at rest", "running", "completed", "failed", "cancelled", "undone", "joined"] as const;
const CLOSED: ReadonlySet<EntryKind> = new Set(["turn.interrupted", "turn.cancelled"]);

function entry(kind: EntryKind, turn: string, attempt: number, nth: number | null, data: object = {}): Unnumbered {
  return { kind, turn_id: turn, attempt, nth, at: 1_000 * attempt + (nth ?? 0), data };
}

/** Write the entries of one attempt. */
function attemptOf(turn: string, attempt: number, steps: readonly Step[]): Unnumbered[] {
  const written = [entry("turn.started", turn, attempt, 1, { attempt })];
  const calls: string[] = [];
  for (const step of steps) {
    const nth = written.length + 1;
    const mark = `<${turn} ${attempt} ${nth}>`;
    if (step === "text" || step === "reasoning") written.push(entry(step, turn, attempt, nth, { text: mark }));
    if (step === "note") written.push(entry("note", turn, attempt, nth, { text: mark }));
    if (step === "usage") written.push(entry("usage", turn, attempt, nth, { model: "m", input_tokens: nth }));
    if (step === "tool") {
      calls.push(mark);
      written.push(entry("tool.started", turn, attempt, nth, { call_id: mark, name: "fetch", args: { mark } }));
    }
    const call = step === "result" ? calls.pop() : undefined;
    if (call) written.push(entry("tool.finished", turn, attempt, nth, { call_id: call, outcome: "ok", result: mark }));
  }
  return written;
}

/** Write the end of an attempt that does not end its turn. */
function parting(turn: string, attempt: number, nth: number, fate: Fate): Unnumbered[] {
  if (fate === "deferred") {
    const data = { error: "away", retry_at: 9_000 };
    return [
      entry("note", turn, attempt, nth + 1, { text: "Waiting for the model: away.", waiting: "model" }),
      entry("turn.deferred", turn, attempt, nth + 2, data),
    ];
  }
  if (fate !== "parked") {
    const data = { cause: "crash", continues: fate === "continued", recovery: fate === "continued" ? "pending" : "" };
    return [entry("turn.interrupted", turn, attempt, null, data)];
  }
  const question_id = `q${attempt}`;
  return [
    entry("approval.asked", turn, attempt, nth + 1, { question_id, text: "may I?", about: "approval", choices: ["y"] }),
    entry("approval.answered", turn, attempt, null, { question_id, text: "y" }),
  ];
}

const turn = (id: string) =>
  fc
    .record({
      attempts: fc.array(fc.tuple(fc.array(fc.constantFrom(...STEPS), { maxLength: 8 }), fc.constantFrom(...FATES)), {
        maxLength: 3,
      }),
      last: fc.array(fc.constantFrom(...STEPS), { maxLength: 8 }),
      end: fc.constantFrom(...ENDS),
    })
    .map(({ attempts, last, end }) => {
      const images = [{ media_type: "image/png", bytes: 3 }];
      const written = [entry("turn.accepted", id, 0, null, { text: `message of ${id}`, images })];
      if (end === "undone") written.push(entry("turn.revised", id, 0, null, { text: `another message of ${id}` }));
      if (end === "joined") return [...written, entry("turn.completed", id, 0, null, { joined: "t0" })];
      for (const [index, [steps, fate]] of attempts.entries()) {
        written.push(...attemptOf(id, index + 1, steps));
        written.push(...parting(id, index + 1, written.at(-1)?.nth ?? 1, fate));
      }
      return end === "at rest" ? written : [...written, ...ending(id, attempts.length + 1, last, end)];
    });

function ending(id: string, attempt: number, steps: readonly Step[], end: End): Unnumbered[] {
  const written = attemptOf(id, attempt, steps);
  const nth = written.length + 1;
  if (end === "cancelled") written.push(entry("turn.cancelled", id, attempt, null, { cause: "user" }));
  if (end === "completed") written.push(entry("turn.completed", id, attempt, nth, { text: "all of it" }));
  if (end === "failed") written.push(entry("turn.failed", id, attempt, nth, { error: "no" }));
  if (end === "undone") written.push(entry("turn.undone", id, attempt, null));
  return written;
}

/** Interleave turns, each in its own order. */
function woven(turns: readonly Unnumbered[][], order: readonly number[]): Unnumbered[] {
  const ahead = turns.map((each) => [...each]);
  const found = order.flatMap((each) => ahead[each % ahead.length]!.splice(0, 1));
  return [...found, ...ahead.flat()];
}

/** Let the last entries of lost attempts arrive late, each at some later position. */
function delayed(entries: readonly Unnumbered[], firstLate: number, places: readonly number[]): Unnumbered[] {
  const lost = new Set(
    entries.filter((each) => CLOSED.has(each.kind)).map((each) => `${each.turn_id} ${each.attempt}`),
  );
  const isLate = (each: Unnumbered) => lost.has(`${each.turn_id} ${each.attempt}`) && (each.nth ?? 0) >= firstLate;
  const arrived = entries.filter((each) => !isLate(each));
  for (const [index, each] of entries.filter(isLate).entries()) {
    const same = (other: Unnumbered) => other.turn_id === each.turn_id && other.attempt === each.attempt;
    const closing = arrived.findLastIndex((other) => CLOSED.has(other.kind) && same(other));
    const room = arrived.length - closing;
    arrived.splice(closing + 1 + (places[index % places.length]! % room), 0, each);
  }
  return arrived;
}

const hosting = (first: readonly Unnumbered[]): Unnumbered[] => {
  const at = first.findIndex((each) => each.kind === "turn.started");
  const joins = ["t1", "t2"].map((id) =>
    entry("message.joined", "t0", 1, null, { text: `message of ${id}`, turn_id: id }),
  );
  return at < 0 ? [...first] : first.toSpliced(at + 1, 0, ...joins);
};

/** A journal in the order of its commits. */
export const journals: fc.Arbitrary<JournalEntry[]> = fc
  .record({
    turns: fc.tuple(turn("t0").map(hosting), turn("t1"), turn("t2")),
    order: fc.array(fc.nat(2), { maxLength: 40 }),
    firstLate: fc.integer({ min: 2, max: 12 }),
    places: fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
  })
  .map(({ turns, order, firstLate, places }) =>
    delayed(woven(turns, order), firstLate, places).map((each, index) => ({ ...each, seq: index + 1 })),
  );

/** Return a page of turns as the gateway answers it while its journal ends at a number. */
export function pageOf(entries: readonly JournalEntry[], turns: ReadonlySet<string>, seq: number): JournalEntry[] {
  const page: JournalEntry[] = [];
  for (const entry of entries.filter((each) => turns.has(each.turn_id) && each.seq <= seq)) {
    const before = page.at(-1);
    if (before && goesOn(before, entry)) page[page.length - 1] = joined(before, entry);
    else page.push({ ...entry, since: entry.seq });
  }
  return page;
}

function goesOn(before: JournalEntry, entry: JournalEntry): boolean {
  const words = entry.kind === "text" || entry.kind === "reasoning";
  const same = before.kind === entry.kind && before.turn_id === entry.turn_id && before.attempt === entry.attempt;
  return words && same && entry.seq === before.seq + 1 && before.nth !== null && entry.nth === before.nth + 1;
}

function joined(before: JournalEntry, entry: JournalEntry): JournalEntry {
  const text = textField(before) + textField(entry);
  return { ...before, seq: entry.seq, nth: entry.nth, since: firstSeq(before), data: { text } };
}
