// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { usageLines, usageSummary } from "../../src/sessions/usage.tsx";

const NOTHING = { model: "", input: 0, output: 0, cached: 0, costMicros: 0 };

test("no usage shows nothing", () => {
  expect(usageSummary(NOTHING)).toBe("");
  expect(usageLines(NOTHING)).toEqual([]);
});

test("a price is shown if it is known", () => {
  expect(usageSummary({ ...NOTHING, input: 12_000, output: 345 })).toBe("12.3k tokens");
  expect(usageSummary({ ...NOTHING, input: 900, output: 100, costMicros: 12_345 })).toMatch(/ tokens · \$0\.0123$/);
});

test("the cached share of the input never exceeds 100 %", () => {
  const read = (input: number, cached: number) =>
    usageLines({ ...NOTHING, input, cached }).find((each) => each.name === "Input")?.value;
  expect(read(400, 300)).toBe("400 tokens (75 % cached)");
  expect(read(100, 300)).toBe("100 tokens (100 % cached)");
});
