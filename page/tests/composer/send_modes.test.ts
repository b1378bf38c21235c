// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { busyPolicy, sendModes } from "../../src/composer/send_modes.ts";
import { openingFor } from "../../src/composer/sending.ts";
import type { Outgoing } from "../../src/outbox/message.ts";
import { question, turn } from "../turns/turns.ts";

const named = (...given: Parameters<typeof sendModes>) => sendModes(...given).map((each) => each.name);

test("while nothing runs there is one way, and the gateway decides about what it does not know of", () => {
  expect(named(undefined)).toEqual(["send"]);
  expect(busyPolicy(sendModes(undefined)[0])).toBeNull();
});

test("while something runs a message waits, unless somebody chooses", () => {
  expect(sendModes(turn("a", "running")).map(busyPolicy)).toEqual(["queue", "steer", "interrupt"]);
});

test("a question is answered, but consent is given where it is asked for", () => {
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

test("messages that wait for the same session to be opened share it", () => {
  expect(openingFor([unopened("waiting")], "ses_a").key).toBe("web-1");
  expect(openingFor([unopened("waiting")], null).key).not.toBe("web-1");
  expect(openingFor([unopened("refused")], "ses_a").key).not.toBe("web-1");
  expect(openingFor([], null)).not.toEqual(openingFor([], null));
});
