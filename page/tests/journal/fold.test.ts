import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JournalEntry } from "../../src/journal/entries.ts";
import { emptyView, fold } from "../../src/journal/fold.ts";
import type { View } from "../../src/journal/view.ts";
import type { EntryKind } from "../../src/wire.ts";
import { journals, pageOf } from "./journals.ts";

const TURNS = ["t0", "t1", "t2"];
const shown = ({ seq, turns }: View) => ({ seq, turns });

function entry(seq: number, kind: EntryKind, data: object = {}, more: Partial<JournalEntry> = {}): JournalEntry {
  return { seq, kind, data, turn_id: "t", attempt: 1, nth: seq, at: seq, ...more };
}

/** What a reader may receive: repeated entries, and pages of any turns as of any time. */
const arrivals = (entries: readonly JournalEntry[]): fc.Arbitrary<JournalEntry[][]> => {
  const raw: fc.Arbitrary<JournalEntry[]> = fc.subarray([...entries]);
  const page = fc
    .tuple(fc.subarray(TURNS), fc.nat(entries.length))
    .map(([turns, seq]) => pageOf(entries, new Set(turns), seq));
  const rest = fc.constantFrom([...entries], pageOf(entries, new Set(TURNS), entries.length));
  return fc
    .tuple(fc.array(fc.oneof(raw, page), { maxLength: 6 }), rest, fc.array(fc.nat(50), { maxLength: 4 }))
    .chain(([parts, whole, cuts]) =>
      fc.shuffledSubarray([...parts, ...split(whole, cuts)], { minLength: parts.length + cuts.length + 1 }),
    );
};

function split(entries: readonly JournalEntry[], cuts: readonly number[]): JournalEntry[][] {
  const places = cuts.map((each) => each % (entries.length + 1)).sort((one, other) => one - other);
  return [0, ...places].map((from, index) => entries.slice(from, places[index] ?? entries.length));
}

describe("the fold", () => {
  it("gives the same view for the same entries, however they arrive", () => {
    const case_ = journals.chain((entries) => fc.tuple(fc.constant(entries), arrivals(entries)));
    fc.assert(
      fc.property(case_, ([entries, parts]) => {
        expect(shown(parts.reduce(fold, emptyView))).toEqual(shown(fold(emptyView, entries)));
      }),
      { numRuns: 400 },
    );
  });

  it("gives the same view word by word as at once, with constant keys", () => {
    fc.assert(
      fc.property(journals, (entries) => {
        let view = emptyView;
        const closed = new Set<string>();
        const isLate = (each: JournalEntry) => each.nth !== null && closed.has(`${each.turn_id} ${each.attempt}`);
        for (const each of entries) {
          const next = fold(view, [each]);
          for (const turn of view.turns) {
            const now = next.turns.find((other) => other.id === turn.id)!;
            if (turn.id !== each.turn_id && turn.id !== "t0") expect(now).toBe(turn);
            const keys = now.items.map((item) => item.key);
            expect(new Set(keys).size).toBe(keys.length);
            // A late entry may close a gap, which joins the items on both sides.
            if (!isLate(each)) expect(keys).toEqual(expect.arrayContaining(turn.items.map((item) => item.key)));
          }
          if (each.kind === "turn.interrupted" || each.kind === "turn.cancelled")
            closed.add(`${each.turn_id} ${each.attempt}`);
          view = next;
        }
        expect(shown(view)).toEqual(shown(fold(emptyView, entries)));
      }),
    );
  });

  it("returns the same object if nothing is new", () => {
    fc.assert(
      fc.property(journals, (entries) => {
        const view = fold(emptyView, entries);
        expect(fold(view, entries)).toBe(view);
        expect(fold(view, pageOf(entries, new Set(TURNS), entries.length / 2))).toBe(view);
      }),
    );
  });

  it("changes no earlier view", () => {
    fc.assert(
      fc.property(journals, fc.nat(40), (entries, cut) => {
        const [first, rest] = [entries.slice(0, cut), entries.slice(cut)];
        const before = fold(emptyView, first);
        const copy = structuredClone(shown(before));
        fold(before, rest);
        expect(shown(before)).toEqual(copy);
        expect(shown(fold(before, rest))).toEqual(shown(fold(emptyView, entries)));
      }),
    );
  });

  it("reads each word of a long answer only a few times", () => {
    let looks = 0;
    const look = (of: JournalEntry, key: string | symbol) => {
      if (key === "kind") looks += 1;
      return Reflect.get(of, key);
    };
    const counted = (plain: JournalEntry) => new Proxy(plain, { get: look });
    let view = fold(emptyView, [entry(1, "turn.accepted", { text: "go" }, { attempt: 0, nth: null })]);
    const words = 10_000;
    for (let seq = 2; seq < words + 2; seq += 1) view = fold(view, [counted(entry(seq, "text", { text: "word " }))]);
    expect(view.turns[0]!.items.at(-1)).toMatchObject({ role: "assistant", text: "word ".repeat(words) });
    expect(looks).toBeLessThan(20 * words);
  });

  it("finds each of very many turns", () => {
    const ids = Array.from({ length: 300 }, (_, number) => `t${number}`);
    const messages = ids.map((id, at) => entry(at + 1, "turn.accepted", { text: id }, { turn_id: id, nth: null }));
    const view = messages.reduce((before, each) => fold(before, [each]), emptyView);
    const later = ids.map((id, at) => entry(1_000 + at, "text", { text: id }, { turn_id: id, nth: 1 }));
    const { turns } = later.reduceRight((before, each) => fold(before, [each]), view);
    expect(turns.map((each) => each.items.map((item) => "text" in item && item.text))).toEqual(
      ids.map((id) => [id, id]),
    );
  });

  it("shows a turn only once its message is loaded", () => {
    const late = fold(emptyView, [entry(7, "text", { text: "so" })]);
    expect(late.turns).toEqual([]);
    const [turn] = fold(late, [entry(1, "turn.accepted", { text: "go" }, { nth: null })]).turns;
    expect(turn!.items.map((each) => each.role)).toEqual(["user", "assistant"]);
  });

  it("keeps a turn waiting for its model until the next attempt", () => {
    const accepted = entry(1, "turn.accepted", { text: "go" }, { attempt: 0, nth: null });
    const begun = [accepted, entry(2, "turn.started"), entry(3, "note", { text: "Waiting for the model: away." })];
    const view = fold(emptyView, [...begun, entry(4, "turn.deferred", { error: "away", retry_at: 9_000 })]);
    expect(view.turns[0]).toMatchObject({ state: "queued", wait: { error: "away", retryAt: 9_000 } });
    expect(view.turns[0]!.items.map((each) => each.role)).toEqual(["user", "note"]);
    const again = fold(view, [entry(5, "turn.started", {}, { attempt: 2, nth: 1 })]);
    expect(again.turns[0]).toMatchObject({ state: "running", wait: null, resumed: false });
  });

  it("puts a question and its answer into one item, and the turn waits in between", () => {
    const asked = entry(2, "approval.asked", {
      question_id: "q",
      text: "may I?",
      about: "approval",
      choices: ["once"],
    });
    const waiting = fold(emptyView, [entry(1, "turn.accepted", {}, { nth: null }), asked]);
    expect(waiting.turns[0]).toMatchObject({ state: "waiting", items: [{}, { role: "question", answer: null }] });
    const answered = fold(waiting, [entry(3, "approval.answered", { question_id: "q", text: "once" }, { nth: null })]);
    expect(answered.turns[0]).toMatchObject({ state: "queued", items: [{}, { text: "may I?", answer: "once" }] });
  });

  it("shows the pictures of a joined message in the turn it joined", () => {
    const picture = { media_type: "image/png", bytes: 9 };
    const host = [
      entry(1, "turn.accepted", {}, { nth: null }),
      entry(4, "message.joined", { turn_id: "u", text: "see" }),
    ];
    const guest = [
      entry(2, "turn.accepted", { text: "see", images: [picture] }, { turn_id: "u", nth: null }),
      entry(3, "turn.completed", { joined: "t" }, { turn_id: "u", nth: null }),
    ];
    const view = fold(fold(emptyView, host), guest);
    expect(view.turns.map((each) => each.hidden)).toEqual([false, true]);
    expect(view.turns[0]!.items[1]).toMatchObject({ turnId: "u", joinedFrom: "u", images: [picture] });
  });

  it("says that a turn was interrupted and resumed", () => {
    const cut = entry(3, "turn.interrupted", { cause: "crash", continues: true }, { nth: null });
    const begun = [entry(1, "turn.accepted", {}, { nth: null }), entry(2, "turn.started", {}), cut];
    expect(fold(emptyView, begun).turns[0]).toMatchObject({ state: "queued", cause: "crash", resumed: false });
    const again = fold(emptyView, [...begun, entry(4, "turn.started", {}, { attempt: 2, nth: 1 })]);
    expect(again.turns[0]).toMatchObject({ state: "running", attempt: 2, resumed: true, endedAt: null });
    expect(again.turns[0]!.items[1]).toMatchObject({ role: "marker", continues: true, recovery: "nothing" });
  });
});
