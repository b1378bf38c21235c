// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Line } from "../../src/journal/line.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a line that fell silent is given up although the clock was set back", () => {
  const line = new Line(new AbortController().signal);
  line.heard();
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(60_000);
  expect(line.signal.aborted).toBe(true);
});
