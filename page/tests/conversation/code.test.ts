// @vitest-environment happy-dom
import { expect, it } from "vitest";
import { isColoured } from "../../src/conversation/markdown/code.tsx";

it("colours nothing that a grammar would look at for minutes", () => {
  expect(isColoured("[a](".repeat(4_000))).toBe(false);
  expect(isColoured("a\n".repeat(20_000))).toBe(false);
  expect(isColoured("const answer = 42;\n".repeat(500))).toBe(true);
});
