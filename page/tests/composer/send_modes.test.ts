// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { busyPolicy, sendModes } from "../../src/composer/send_modes.ts";
import { openingFor } from "../../src/composer/sending.ts";
import type { Outgoing } from "../../src/outbox/message.ts";
import { question, turn } from "../turns/turns.ts";

const named = (...given: Parameters<typeof sendModes>) => sendModes(...given).map((each) => each.name);

test("an idle session has one way to send, and the gateway decides the rest", () => {
  expect(named(undefined)).toEqual(["send"]);
  expect(busyPolicy(sendModes(undefined)[0])).toBeNull();
});

test("a message to a busy session is queued by default", () => {
  expect(sendModes(turn("a", "running")).map(busyPolicy)).toEqual(["queue", "steer", "interrupt"]);
});

test("a message answers a question, but not a request for consent", () => {
  expect(named(turn("a", "waiting", [question("answer")]))[0]).toBe("answer");
  expect(named(turn("a", "waiting", [question("approval")]))[0]).toBe("queue");
});

const unopened = (state: Outgoing["state"]): Outgoing => ({
  key: "1",
  at: 0,
  state,
  turnId: null,
  problem: "",
  reply: null,
  sessionId: null,
  opening: { key: "web-1", previous_session_id: "ses_a" },
  text: "hello",
  images: [],
  busy: null,
});

test("messages that wait for the same new session share it", () => {
  expect(openingFor([unopened("waiting")], "ses_a").key).toBe("web-1");
  expect(openingFor([unopened("waiting")], null).key).not.toBe("web-1");
  expect(openingFor([unopened("refused")], "ses_a").key).not.toBe("web-1");
  expect(openingFor([], null)).not.toEqual(openingFor([], null));
});
