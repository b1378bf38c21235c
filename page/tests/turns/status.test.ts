import { expect, test } from "vitest";
import { base64 } from "../../src/bytes.ts";
import { activeTurn, isOver, nextTryText, openQuestion, queuedTurns } from "../../src/turns/status.ts";
import { question, turn } from "./turns.ts";

const over = turn("a", "completed");
const [first, second, third] = [turn("b", "queued"), turn("c", "queued"), turn("d", "queued")];

test("the active turn is the running or waiting one, else the first queued one", () => {
  expect(activeTurn([over])).toBeUndefined();
  expect(activeTurn([over, first, second])).toBe(first);
  const running = turn("r", "waiting");
  expect(activeTurn([over, first, running])).toBe(running);
});

test("all other queued turns are behind it", () => {
  expect(queuedTurns([over, first, second, third])).toEqual([second, third]);
  expect(queuedTurns([over, turn("r", "running"), first, second])).toEqual([first, second]);
  expect(queuedTurns([over])).toEqual([]);
});

test("an interrupted turn has ended until it resumes", () => {
  expect(isOver(turn("i", "interrupted"))).toBe(true);
  expect(isOver(first)).toBe(false);
});

test("the open question is the last unanswered one of a waiting turn", () => {
  const [answered, open] = [question("answer", "yes"), question("approval")];
  expect(openQuestion(turn("w", "waiting", [open, answered]))).toBe(open);
  expect(openQuestion(turn("w", "waiting", [answered]))).toBeUndefined();
  expect(openQuestion(turn("w", "running", [open]))).toBeUndefined();
});

test("bytes are encoded as base64, even many of them", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => (at * 7) % 256);
  expect(base64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
});

test("a turn that waits for its model says when it is retried", () => {
  expect(nextTryText(2_000, 5_000)).toBe("Next try in a moment.");
  expect(nextTryText(17_400, 5_000)).toBe("Next try in 12 s.");
  const soon = new Date(2026, 6, 1, 14, 5);
  expect(nextTryText(soon.getTime(), soon.getTime() - 300_000)).toMatch(/^Next try at .*05.*\.$/);
});
