// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { accepted, type Outgoing } from "../../src/outbox/message.ts";
import { hasArrived, isExpired, recordTurn } from "../../src/outbox/outbox.ts";

const HOUR_MS = 3_600_000;
const written = { key: "k", text: "hello", sessionId: "s", state: "sending", at: Date.now() - 2 * HOUR_MS } as Outgoing;

test("a message that waited for hours stays until the journal shows it, and a while longer for other tabs", () => {
  const taken = accepted(written, { turn_id: "t", session_id: "s", reply: null });
  expect(hasArrived(taken)).toBe(false);
  recordTurn({ id: "t", key: "k" });
  expect([hasArrived(taken), isExpired(taken)]).toEqual([true, false]);
  expect(isExpired({ ...taken, acceptedAt: Date.now() - HOUR_MS })).toBe(true);
});
