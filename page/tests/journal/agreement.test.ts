import { expect, test } from "vitest";
import type { JournalEntry } from "../../src/journal/entries.ts";
import { emptyView, fold } from "../../src/journal/fold.ts";
import type { Item, Turn } from "../../src/journal/view.ts";
import type { Item as Told } from "../../src/wire.ts";

/** Journals with the gateway's transcripts: tests/page/test_fold.py writes them and runs this. */
interface Case {
  entries: JournalEntry[];
  joined: JournalEntry[];
  items: Told[];
  /** A gateway streamed it and cancelled a turn in it. */
  live: boolean;
}

const path: string | undefined = import.meta.env.VITE_CORPUS;
const { default: cases }: { default: Case[] } = path ? await import(/* @vite-ignore */ path) : { default: [] };

const nothing = { kind: null, call_id: null, name: null, args: null, result: null, outcome: null };

/** Return an item in the form of the transcript. */
function told(turn: Turn, item: Item): Told {
  const { role, at, recovered } = item;
  const base = { ...nothing, role, at, recovered, turn_id: turn.id };
  switch (item.role) {
    case "user":
      return { ...base, text: item.text, kind: item.joinedFrom === null ? null : "joined" };
    case "prior":
      return { ...base, text: item.text, kind: item.speaker };
    case "tool":
      return { ...base, text: "", ...called(item), result: item.result, outcome: item.outcome };
    case "question":
      return { ...base, text: item.text, kind: "asked" };
    case "note":
      return { ...base, text: item.text, kind: item.kind === "compacted" ? item.kind : null };
    case "marker":
      return { ...base, text: item.text, kind: item.kind };
    default:
      return { ...base, text: item.text };
  }
}

const called = ({ callId, name, args }: Item & { role: "tool" }) => ({ call_id: callId, name, args });

const isAnswer = (item: Told) => item.role === "question" && item.kind === "answered";
/** The transcript says how far a summary reaches, which the page does not need. */
const shown = (item: Told): Told => ({
  ...nothing,
  text: "",
  recovered: false,
  ...item,
  ...(item.kind === "compacted" ? { args: null } : {}),
});

test.skipIf(!path)(`the page folds ${cases.length} journals as the gateway does`, () => {
  for (const { entries, joined, items } of cases) {
    for (const given of [entries, joined]) {
      const turns = fold(emptyView, given).turns.filter((each) => !each.hidden);
      const found = turns.flatMap((turn) => turn.items.map((item) => told(turn, item)));
      expect(found).toEqual(items.filter((each) => !isAnswer(each)).map(shown));
      const answers = turns.flatMap(({ items }) =>
        items.flatMap((each) => (each.role === "question" ? (each.answer ?? []) : [])),
      );
      expect(answers).toEqual(items.filter(isAnswer).map((each) => each.text));
    }
  }
});

test.skipIf(!path)("a turn that is cancelled while it streams shows nothing more", () => {
  const live = cases.filter((each) => each.live);
  expect(live).not.toHaveLength(0);
  for (const { entries } of live) {
    let view = emptyView;
    let final: Turn | undefined;
    for (const entry of entries) {
      view = fold(view, [entry]);
      final ??= view.turns.find((each) => each.state === "cancelled");
      if (final) expect(view.turns.find((each) => each.id === final?.id)?.items).toEqual(final.items);
    }
    expect(final).toBeDefined();
  }
});
