// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { titled, unread, withSeen } from "../../src/sessions/unread.ts";
import { session } from "./session.ts";

const before = new Map([["ses_1", 4]]);

test("a session with new entries is unread once its turn has ended", () => {
  expect(unread(session({ seq: 5 }), before)).toBe(true);
  expect(unread(session({ seq: 5, activity: "waiting" }), before)).toBe(true);
  expect(unread(session({ seq: 5, activity: "running" }), before)).toBe(false);
  expect(unread(session({ seq: 4 }), before)).toBe(false);
});

test("a session that is new to this browser counts as seen", () => {
  const after = withSeen(before, [session({ id: "ses_2", seq: 9 })], null);
  expect(unread(session({ id: "ses_2", seq: 9 }), after)).toBe(false);
  expect(unread(session({ id: "ses_2", seq: 10 }), after)).toBe(true);
});

test("only the open session is marked as seen", () => {
  const found = [session({ seq: 5 })];
  expect(withSeen(before, found, null)).toBe(before);
  expect(withSeen(before, found, "ses_1").get("ses_1")).toBe(5);
});

test("the title shows unread sessions, activity and the current page", () => {
  expect(titled("", { news: 0, isRunning: false })).toBe("Holdfast");
  expect(titled("Plans", { news: 0, isRunning: false })).toBe("Plans · Holdfast");
  expect(titled("Plans", { news: 2, isRunning: true })).toBe("(2) ● Plans · Holdfast");
});
