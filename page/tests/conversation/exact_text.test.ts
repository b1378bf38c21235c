import { describe, expect, it } from "vitest";
import { legibleText, withHiddenMarked } from "../../src/conversation/exact_text.tsx";

describe("a text to approve", () => {
  it.each([
    ["rm -rf ~ #\rls", "rm -rf ~ #‹U+000D›ls"],
    ["echo \u001b]0;; rm -rf ~ ;\u0007 hi", "echo ‹U+001B›]0;; rm -rf ~ ;‹U+0007› hi"],
    ["cat \u202etxt.exe", "cat ‹U+202E›txt.exe"],
    ["ls\u200b", "ls‹U+200B›"],
    ["a\u{e0041}\ud800", "a‹U+E0041›‹U+D800›"],
  ])("hides nothing of %j", (text, shown) => {
    expect(legibleText(text)).toBe(shown);
  });

  it("stays the same if all of it is visible", () => {
    const text = "for each in *; do\n\techo “$each” – é 日本 😀\ndone";
    expect(withHiddenMarked(text)).toEqual([{ text, isHidden: false }]);
  });
});
