// @vitest-environment happy-dom
import { expect, it } from "vitest";
import { isHighlightable } from "../../src/conversation/markdown/code.tsx";

it("highlights nothing that a grammar would scan for minutes", () => {
  expect(isHighlightable("[a](".repeat(4_000))).toBe(false);
  expect(isHighlightable("a\n".repeat(20_000))).toBe(false);
  expect(isHighlightable("const answer = 42;\n".repeat(500))).toBe(true);
});
