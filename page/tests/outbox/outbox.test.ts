// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setConnection } from "../../src/connection.ts";
import { discard, markArrived, outgoing, resend, send, startOutbox } from "../../src/outbox/outbox.ts";
import { retryNow } from "../../src/retry.ts";
import { go, route, to } from "../../src/router.ts";
import { checkAccess } from "../../src/sign_in/identity.ts";

interface Post {
  path: string;
  key: string | null;
  text: string;
  answer(status: number, body?: object): void;
}

/** The sent messages, each answered when the test says so. */
let posts: Post[] = [];

let owner = "ada";

beforeEach(async () => {
  posts = [];
  setConnection("live");
  globalThis.fetch = (input, init) =>
    new Promise((resolve) => {
      if (input === "/api/me") return resolve(Response.json({ owner, scopes: [], how: "key" }));
      const { text = "" } = JSON.parse(String(init?.body ?? "{}"));
      const key = new Headers(init?.headers).get("Idempotency-Key");
      const answer = (status: number, body: object = {}) => resolve(Response.json(body, { status }));
      posts.push({ path: String(input), key, text, answer });
    });
  await checkAccess();
});
afterEach(async () => {
  for (const each of outgoing.value) await discard(each.key);
});

const draft = (sessionId: string | null, text: string, opening: string | null = null) => ({
  ...{ sessionId, text, images: [], busy: null },
  opening: opening === null ? null : { key: opening, previous_session_id: null },
});
const receipt = (session_id: string, turn_id: string, reply: string | null = null) => ({ session_id, turn_id, reply });
const states = () => outgoing.value.map((each) => each.state);
const sent = (count: number) => vi.waitFor(() => expect(posts).toHaveLength(count));
const soon = (check: () => void) => vi.waitFor(check);

test("a message is stored, sent with its key, and removed when the journal shows its turn", async () => {
  const key = await send(draft("a", "hello"));
  await sent(1);
  expect(posts[0]).toMatchObject({ path: "/api/sessions/a/messages", key, text: "hello" });
  expect(states()).toEqual(["sending"]);
  posts[0]!.answer(202, receipt("a", "t1"));
  await soon(() => expect(outgoing.value).toMatchObject([{ state: "accepted", turnId: "t1" }]));
  markArrived([{ id: "t1", key: "" }]);
  expect(states()).toEqual([]);
});

test("a turn that arrives before its receipt is not shown twice", async () => {
  const key = await send(draft("b", "again"));
  await sent(1);
  markArrived([{ id: "t2", key }]);
  expect(states()).toEqual([]);
  posts[0]!.answer(202, receipt("b", "t2"));
  await send(draft("b", "next"));
  await sent(2);
  expect(states()).toEqual(["sending"]);
  posts[1]!.answer(202, receipt("b", "t3"));
  await soon(() => expect(outgoing.value).toMatchObject([{ text: "next", state: "accepted" }]));
});

test("a different turn hides no message, whatever its text", async () => {
  await send(draft("c", "yes"));
  markArrived([{ id: "old", key: "of-another" }]);
  expect(outgoing.value).toMatchObject([{ text: "yes" }]);
  await sent(1);
  posts[0]!.answer(202, receipt("c", "t4"));
});

test("a refused message waits and can be sent again", async () => {
  const key = await send(draft("d", "too much"));
  await sent(1);
  posts[0]!.answer(413, { error: { code: "too_large", message: "too large" } });
  await soon(() => expect(outgoing.value).toMatchObject([{ state: "refused", problem: "Too large." }]));
  await resend(key);
  await sent(2);
  posts[1]!.answer(202, receipt("d", "t5"));
  await soon(() => expect(states()).toEqual(["accepted"]));
  expect(posts.map((each) => each.key)).toEqual([key, key]);
});

test("the reply to a command stays until it is discarded", async () => {
  const key = await send(draft("e", "/help"));
  await sent(1);
  posts[0]!.answer(202, receipt("e", "", "There is much to say."));
  await soon(() => expect(outgoing.value).toMatchObject([{ reply: "There is much to say." }]));
  await discard(key);
  expect(states()).toEqual([]);
});

test("messages that open a session share it, and are sent in order", async () => {
  await send(draft(null, "one", "web-7"));
  await send(draft(null, "two", "web-7"));
  await sent(1);
  expect(posts[0]).toMatchObject({ path: "/api/sessions" });
  posts[0]!.answer(201, { id: "f" });
  await sent(2);
  expect(outgoing.value.map((each) => each.sessionId)).toEqual(["f", "f"]);
  posts[1]!.answer(202, receipt("f", "t6"));
  await sent(3);
  posts[2]!.answer(202, receipt("f", "t7"));
  await soon(() => expect(states()).toEqual(["accepted", "accepted"]));
  expect(posts.slice(1).map((each) => [each.path, each.text])).toEqual([
    ["/api/sessions/f/messages", "one"],
    ["/api/sessions/f/messages", "two"],
  ]);
});

test("a message is shown to and sent for its author only", async () => {
  startOutbox();
  await send(draft("i", "mine"));
  await sent(1);
  posts[0]!.answer(503, { error: { code: "draining", message: "not now" } });
  await soon(() => expect(states()).toEqual(["waiting"]));
  owner = "grace";
  await checkAccess();
  expect(states()).toEqual([]);
  await send(draft("j", "hers"));
  await sent(2);
  posts[1]!.answer(202, receipt("j", "t9"));
  await soon(() => expect(outgoing.value).toMatchObject([{ text: "hers", state: "accepted" }]));
  retryNow();
  expect(posts.map((each) => each.text)).toEqual(["mine", "hers"]);
  owner = "ada";
  await checkAccess();
  expect(outgoing.value).toMatchObject([{ text: "mine" }]);
  retryNow();
  await sent(3);
  posts[2]!.answer(202, receipt("i", "t10"));
  await soon(() => expect(states()).toEqual(["accepted"]));
});

test("a message to an ended session leads to the following one", async () => {
  go(to.session("g"));
  await send(draft("g", "on"));
  await sent(1);
  posts[0]!.answer(202, receipt("h", "t8"));
  await soon(() => expect(route.value).toMatchObject({ name: "session", id: "h" }));
});

test("a message is written ahead when it leaves the field, and adopted by the next page", async () => {
  const sending = send(draft("k", "in haste"));
  const [name] = Object.keys(localStorage).filter((each) => each.startsWith("holdfast.leaving."));
  const written = localStorage.getItem(name!)!;
  const key = await sending;
  await sent(1);
  expect(localStorage.getItem(name!)).toBeNull();
  posts[0]!.answer(202, receipt("k", "t11"));
  await soon(() => expect(states()).toEqual(["accepted"]));
  await discard(key);
  localStorage.setItem(name!, written);
  startOutbox();
  await sent(2);
  expect(posts[1]).toMatchObject({ key, text: "in haste" });
  posts[1]!.answer(202, receipt("k", "t11"));
  await soon(() => expect(states()).toEqual(["accepted"]));
  expect(localStorage.getItem(name!)).toBeNull();
});
