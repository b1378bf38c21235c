import fc from "fast-check";
import { expect, test } from "vitest";
import { match } from "../../src/palette/fuzzy.ts";

const best = (letters: string, names: string[]) =>
  names
    .flatMap((name) => {
      const found = match(letters, name);
      return found ? [{ name, score: found.score }] : [];
    })
    .sort((a, b) => b.score - a.score)
    .map(({ name }) => name);

test("adjacent letters and starts of words score higher", () => {
  expect(best("exp", ["Expert reviews of the deploy", "Export as JSON", "Fix the pump"])[0]).toMatch(/^Exp/);
  expect(best("nc", ["Announce", "New chat"])[0]).toBe("New chat");
  expect(best("status", ["Show the task, then use status", "Status"])[0]).toBe("Status");
});

test("letters in another order do not match", () => {
  expect(match("tsuats", "Status")).toBeNull();
});

test("matched positions are in the order of typing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme-ascii" }), fc.string({ unit: "grapheme-ascii" }), (letters, name) => {
      const found = match(letters, name);
      if (!found) return;
      const wanted = letters.toLowerCase().replace(/\s+/g, "");
      const text = name.toLowerCase();
      expect(
        found.at
          .map((each) => text[each])
          .join("")
          .replace(/\s+/g, ""),
      ).toBe(wanted);
      expect(found.at).toEqual([...found.at].sort((a, b) => a - b));
    }),
  );
});
