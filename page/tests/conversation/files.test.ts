import { describe, expect, it } from "vitest";
import { countChanges, parseDiff, replacementDiff } from "../../src/conversation/tools/files.tsx";

const RESULT = `Edited a.py.
--- a.py
+++ a.py
@@ -3,4 +3,5 @@
 same
-old
+new
+--more
 end
[… 7 more lines of the difference]`;

describe("diffs", () => {
  it("have line numbers and no file names", () => {
    expect(parseDiff(RESULT).map(({ kind, text, before, after }) => [kind, text, before, after])).toEqual([
      ["place", "@@ -3,4 +3,5 @@", null, null],
      ["same", "same", 3, 3],
      ["removed", "old", 4, null],
      ["added", "new", null, 4],
      ["added", "--more", null, 5],
      ["same", "end", 5, 6],
      ["note", "[… 7 more lines of the difference]", null, null],
    ]);
    expect(countChanges(parseDiff(RESULT))).toEqual({ added: 2, removed: 1 });
  });

  it("are empty if the result has none", () => {
    expect(parseDiff("Created a.txt (3 bytes).")).toEqual([]);
  });

  it("of two texts mark what they share at both ends", () => {
    expect(replacementDiff("a\nb\nc\n", "a\nx\ny\nc\n").map((line) => line.kind[0] + line.text)).toEqual([
      "sa",
      "rb",
      "ax",
      "ay",
      "sc",
    ]);
    expect(replacementDiff("a\na", "a").map((line) => line.kind)).toEqual(["same", "removed"]);
    expect(replacementDiff("", "new\n").map((line) => line.kind)).toEqual(["added"]);
  });
});
