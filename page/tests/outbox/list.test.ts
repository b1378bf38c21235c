// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { outgoingOf, statusOf } from "../../src/outbox/list.tsx";
import type { Outgoing } from "../../src/outbox/message.ts";

function outgoing(key: string, sessionId: string | null, opens: string | null): Outgoing {
  const opening = opens ? { key: opens, previous_session_id: null } : null;
  const rest = { at: 0, turnId: null, problem: "", reply: null, images: [], busy: null, text: key };
  return { key, sessionId, opening, state: "waiting", ...rest };
}

const all = [outgoing("here", "ses_a", null), outgoing("there", "ses_b", null), outgoing("opens", null, "web-1")];
const keys = (...given: [string | null, string | null]) => outgoingOf(all, ...given).map((each) => each.key);

test("each message is shown in its session", () => {
  expect(keys("ses_a", "web-9")).toEqual(["here"]);
  expect(keys("ses_c", "web-1")).toEqual(["opens"]);
  expect(keys(null, null)).toEqual(["opens"]);
});

test("a waiting message says what it waits for", () => {
  const waiting = { state: "waiting", problem: "" } as const;
  expect(statusOf(waiting, false).text).toContain("when the gateway is back");
  expect(statusOf(waiting, true).text).not.toContain("when the gateway is back");
});

test("a refused message says why", () => {
  expect(statusOf({ state: "refused", problem: "The queue is full." }, true)).toMatchObject({
    text: "The queue is full.",
    tone: "bad",
  });
});
