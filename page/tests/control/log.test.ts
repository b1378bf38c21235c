import fc from "fast-check";
import { expect, test } from "vitest";
import { append, emptyLog } from "../../src/control/processes/log.ts";

test("however output is cut into pieces, the log is the same", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (pieces) => {
      let log = emptyLog;
      for (const text of pieces) log = append(log, { text, begin: log.end, end: log.end + text.length });
      expect(log.text).toBe(pieces.join(""));
      expect(log.cut).toBe(false);
    }),
  );
});

test("a log that begins later than it was asked for says that something is missing", () => {
  const first = append(emptyLog, { text: "one\n", begin: 0, end: 4 });
  expect(append(first, { text: "nine\n", begin: 90, end: 95 })).toMatchObject({
    text: "one\nnine\n",
    cut: true,
    end: 95,
  });
});

test("a long log is cut at a line, and says so", () => {
  const line = `${"x".repeat(99)}\n`;
  const log = append(emptyLog, { text: line.repeat(5_000), begin: 0, end: 500_000 });
  expect(log.cut).toBe(true);
  expect(log.text.length).toBeLessThan(500_000);
  expect(log.text.length % line.length).toBe(0);
});
