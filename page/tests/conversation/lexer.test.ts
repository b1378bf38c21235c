import { describe, expect, it } from "vitest";
import { read } from "../../src/conversation/markdown/lexer.ts";

describe("Markdown that is meant to hold up the page", () => {
  it.each([
    ["too long", "word ".repeat(7_000)],
    ["too tangled", "_a".repeat(5_000)],
    ["nested too deeply", "> ".repeat(1_900)],
    ["nested too deeply to be drawn", "> ".repeat(900)],
    ["a list in lists without end", "1. ".repeat(900)],
    ["too tangled below a fence", `\`\`\`\n\`\`\`\n${"![".repeat(5_000)}`],
  ])("is shown as it is where it is %s", (_, text) => {
    expect(read(text)).toBe(null);
  });

  it("may be nested as far as somebody would write it", () => {
    const list = Array.from({ length: 12 }, (_, level) => `${"  ".repeat(level)}- **a**`).join("\n");
    expect(read(list)).not.toBe(null);
  });

  it("may be as long as it likes where it is code", () => {
    const tokens = read(`\`\`\`\n${"_a".repeat(50_000)}\n\`\`\``);
    expect(tokens?.map((token) => token.type)).toEqual(["code"]);
  });
});
