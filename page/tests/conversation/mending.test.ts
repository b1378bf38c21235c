import { describe, expect, it } from "vitest";
import { mended } from "../../src/conversation/markdown/mending.ts";

describe("what is half there", () => {
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
    expect(mended(text)).toBe(shown);
  });
});
