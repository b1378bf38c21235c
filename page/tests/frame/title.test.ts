// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { titled } from "../../src/frame/title.ts";

test("the title says what is new, what runs, and where one is", () => {
  expect(titled("", { news: 0, isRunning: false })).toBe("Holdfast");
  expect(titled("Plans", { news: 0, isRunning: false })).toBe("Plans · Holdfast");
  expect(titled("Plans", { news: 2, isRunning: true })).toBe("(2) ● Plans · Holdfast");
});
