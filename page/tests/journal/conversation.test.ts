// @vitest-environment happy-dom
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Conversation, openConversation } from "../../src/journal/conversation.ts";
import { type JournalEntry, numberField } from "../../src/journal/entries.ts";
import { emptyView, fold } from "../../src/journal/fold.ts";
import { Gateway } from "./gateway.ts";
import { journals } from "./journals.ts";

const LONG_MS = 30_000;
let sessions = 0;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const passing = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

function opened(gateway: Gateway, id = `s${++sessions}`): Conversation {
  globalThis.fetch = gateway.fetch;
  return openConversation(id);
}

const shown = (entries: readonly JournalEntry[]) => fold(emptyView, entries).turns.filter((each) => !each.hidden);

async function all(conversation: Conversation): Promise<void> {
  while (conversation.older.value === "more") await conversation.loadOlder();
}

test("pages and live entries give the whole conversation, through lost connections", async () => {
  const steps = fc.array(fc.tuple(fc.nat(8), fc.constantFrom("on", "cut", "older")), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(journals, fc.nat(30), steps, async (entries, first, parts) => {
      const gateway = new Gateway();
      gateway.happen(entries.slice(0, first));
      const conversation = opened(gateway);
      await passing(LONG_MS);
      for (const [count, then] of [...parts, [entries.length, "on"] as const]) {
        const at = gateway.entries.length;
        gateway.happen(entries.slice(at, at + count));
        if (then === "cut") gateway.cut();
        if (then === "older") await conversation.loadOlder();
        await passing(then === "cut" ? LONG_MS : 20);
      }
      await passing(LONG_MS);
      await all(conversation);
      expect(conversation.turns.value).toEqual(shown(entries));
      const spent = entries.reduce((sum, each) => sum + numberField(each, "input_tokens"), 0);
      expect(conversation.used.value.input).toBe(spent);
      conversation.close();
    }),
    { numRuns: 60 },
  );
});

const message = (seq: number, turn: string): JournalEntry => ({
  ...{ seq, turn_id: turn, attempt: 0, nth: null, kind: "turn.accepted", at: seq },
  data: { text: turn },
});

test("a replaced journal is read from its beginning", async () => {
  const gateway = new Gateway();
  gateway.happen([message(1, "t1"), message(2, "t2")]);
  const conversation = opened(gateway);
  await passing(LONG_MS);
  gateway.entries = [message(1, "restored")];
  gateway.cut();
  await passing(LONG_MS);
  expect(conversation.turns.value.map((each) => each.id)).toEqual(["restored"]);
  conversation.close();
});

test("an answer about a replaced journal is dropped", async () => {
  const gateway = new Gateway();
  gateway.happen([message(1, "t1"), message(2, "t2")]);
  const conversation = opened(gateway);
  await passing(LONG_MS);
  let release = () => {};
  globalThis.fetch = async (input, init) => {
    const answer = await gateway.fetch(input, init);
    if (String(input).includes("cursor=")) await new Promise<void>((resolve) => (release = resolve));
    return answer;
  };
  const older = conversation.loadOlder();
  await passing();
  gateway.entries = [message(1, "restored")];
  gateway.cut();
  await passing(LONG_MS);
  release();
  await older;
  expect(conversation.turns.value.map((each) => each.id)).toEqual(["restored"]);
  expect(conversation.older.value).toBe("none");
  conversation.close();
});

test("a cached session is shown at once, and then catches up", async () => {
  const gateway = new Gateway();
  gateway.happen([message(1, "t1")]);
  const before = opened(gateway, "left");
  await passing(LONG_MS);
  before.close();
  gateway.happen([message(2, "t2")]);
  const again = opened(gateway, "left");
  expect(again.turns.value.map((each) => each.id)).toEqual(["t1"]);
  await passing(LONG_MS);
  expect(again.turns.value.map((each) => each.id)).toEqual(["t1", "t2"]);
  expect(gateway.asked.filter((each) => each.includes("/journal"))).toHaveLength(1);
  again.close();
});

test("an unavailable gateway is retried, and a missing session is an error", async () => {
  const gateway = new Gateway();
  gateway.refusals = [503, 503, 404];
  const conversation = opened(gateway);
  await passing(LONG_MS);
  expect(conversation.problem.value).toMatchObject({ status: 404 });
  expect([conversation.link.value, gateway.asked.length]).toEqual(["away", 3]);
  conversation.close();
});

test("a turn is found however far back it is, and a missing one is not", async () => {
  const gateway = new Gateway();
  gateway.happen([1, 2, 3, 4].map((each) => message(each, `t${each}`)));
  const conversation = opened(gateway);
  await passing(LONG_MS);
  expect(await conversation.loadThrough("t2")).toBe(true);
  expect(conversation.turns.value.map((each) => each.id)).toEqual(["t2", "t3", "t4"]);
  expect(await conversation.loadThrough("elsewhere")).toBe(false);
  expect(conversation.older.value).toBe("none");
  conversation.close();
});
