import fc from "fast-check";
import { Lexer } from "marked";
import { describe, expect, it } from "vitest";
import {
  closeOpenMarks,
  definitions,
  endsInFence,
  regrown,
  sections,
} from "../../src/conversation/markdown/sections.ts";

const LINES = [
  "Words of **some** kind",
  "",
  "",
  "# Heading",
  "- item",
  "  - inner",
  "  more of it",
  "1. first",
  "2) second",
  "> quoted",
  "```py",
  "```",
  "~~~",
  "- step\n\n  ```sh\n  ls\n\n  pwd\n  ```\n",
  "    indented",
  "| a | b |",
  "|---|---|",
  "| 1 | 2 |",
  "---",
  "`a` _b_",
];
const texts = fc.array(fc.constantFrom(...LINES), { maxLength: 25 }).map((lines) => lines.join("\n"));

/** The tokens, without the blanks between and at the ends of blocks. */
const read = (text: string) =>
  new Lexer({ gfm: true })
    .lex(text)
    .filter((token) => token.type !== "space")
    .map((token) => [token.type, token.raw.trim()]);

describe("sections", () => {
  it("give the same alone as together", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(sections(text).join("")).toBe(text);
        expect(sections(text).flatMap(read)).toEqual(read(text));
      }),
      { numRuns: 400 },
    );
  });

  it("are the same however the text grows", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(200), { maxLength: 8 }), (text, cuts) => {
        const steps = [...cuts.sort((a, b) => a - b).map((cut) => text.slice(0, cut)), text];
        expect(steps.reduce<string[]>((before, step) => regrown(before, step), [])).toEqual(sections(text));
      }),
      { numRuns: 300 },
    );
  });

  it("wait until the first line of a section is complete", () => {
    expect(regrown(sections("- item\n\n2"), "- item\n\n2) second")).toEqual(["- item\n\n2) second"]);
  });

  it("keep finished sections while the text grows, and start again for another text", () => {
    const before = sections("one\n\ntwo\n\nthr");
    expect(regrown(before, "one\n\ntwo\n\nthree\n\nfour")).toEqual(["one\n\n", "two\n\n", "three\n\n", "four"]);
    expect(regrown(before, "other\n\ntwo\n\nthree")).toEqual(["other\n\n", "two\n\n", "three"]);
  });

  it("distinguish an open fence from a closed one", () => {
    expect(endsInFence("```js\nlet a")).toBe(true);
    expect(endsInFence("````\n```\n````")).toBe(false);
    expect(endsInFence("```js\nlet a\n```\n")).toBe(false);
  });

  it("share link definitions", () => {
    expect(definitions("See [a].\n\n[a]: https://example.org\n")).toBe("[a]: https://example.org");
    expect(definitions('[a]: https://example.org "The title"')).toBe('[a]: https://example.org "The title"');
    expect(definitions("nothing here")).toBe("");
  });

  it("share nothing that would be shown in each of them", () => {
    expect(definitions("Words.[^1]\n\n[^1]: A footnote.\n\n```ts\n  [key]: string, // of each\n```\n")).toBe("");
  });

  it("are found fast in a long text", () => {
    const text = "A paragraph with `code` in it.\n\n".repeat(40_000);
    const found = sections(text);
    expect(found).toHaveLength(40_000);
  });
});

describe("incomplete marks", () => {
  it.each([
    ["so **bold", "so **bold**"],
    ["so **bold** and", "so **bold** and"],
    ["so **", "so "],
    ["a *b", "a *b*"],
    ["~~gone", "~~gone~~"],
    ["run `ls -l", "run `ls -l`"],
    ["run `", "run "],
    ["`a**b` is **bold", "`a**b` is **bold**"],
    ["see [the page](https://exa", "see the page"],
    ["see [the pa", "see the pa"],
    ["a picture ![of", "a picture "],
    ["2 * 3 = 6", "2 * 3 = 6"],
    ["snake_case_name", "snake_case_name"],
    ["* item", "* item"],
    ["open **in one\n\nnot in the next", "open **in one\n\nnot in the next"],
  ])("%j is shown as %j", (text, shown) => {
    expect(closeOpenMarks(text)).toBe(shown);
  });
});
