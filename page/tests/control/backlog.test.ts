// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { backlogText, KINDS } from "../../src/control/memory/backlog.ts";

const debt = { unpaid: 12, open: 5, owed: 4, failed: 1, parked: 2, committing: 1 };

test("the kinds of the backlog add up to its total", () => {
  expect(KINDS.reduce((sum, { name }) => sum + (debt[name] ?? 0), 0)).toBe(debt.unpaid);
});

test("the backlog is listed by kind, without zeros", () => {
  expect(backlogText(debt)).toBe("4 waiting, 2 on hold, 5 in progress, 1 being learned");
  expect(backlogText(debt, "owed")).toBe("2 on hold, 5 in progress, 1 being learned");
  expect(backlogText({ unpaid: 525, open: 525 }, "owed")).toBe("525 in progress");
  expect(backlogText({})).toBe("");
});
