// @vitest-environment happy-dom
import fc from "fast-check";
import { expect, test } from "vitest";
import { markedPieces } from "../../src/sessions/search.tsx";

test("matches are marked, and no text is lost", () => {
  expect(markedPieces("a backup job", [[2, 8]])).toEqual([
    { at: 0, text: "a ", marked: false },
    { at: 2, text: "backup", marked: true },
    { at: 8, text: " job", marked: false },
  ]);
});

test("the pieces of a text join to that text", () => {
  const marked = fc.tuple(fc.string({ unit: "grapheme" }), fc.array(fc.nat(40), { maxLength: 8 }));
  fc.assert(
    fc.property(marked, ([text, places]) => {
      const inside = [...new Set(places)].filter((each) => each <= text.length).sort((a, b) => a - b);
      const marks = inside.flatMap((begin, index) =>
        index % 2 ? [] : [[begin, inside[index + 1] ?? text.length] as const],
      );
      const made = markedPieces(text, marks);
      expect(made.map((piece) => piece.text).join("")).toBe(text);
      expect(made.filter((piece) => piece.marked).map((piece) => piece.at)).toEqual(marks.map(([begin]) => begin));
    }),
  );
});
