// @vitest-environment happy-dom
import fc from "fast-check";
import { expect, test } from "vitest";
import { append, emptyLog, textOf } from "../../src/control/processes/output.tsx";

const LINE = `${"x".repeat(99)}\n`;

test("however output is cut into pieces, the log is the same", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (pieces) => {
      let log = emptyLog;
      for (const text of pieces) log = append(log, { text, begin: log.end, end: log.end + text.length });
      expect(textOf(log)).toBe(pieces.join(""));
      expect(log.cut).toBe(false);
    }),
  );
});

test("a log that begins later than requested says that output is missing", () => {
  const first = append(emptyLog, { text: "one\n", begin: 0, end: 4 });
  const second = append(first, { text: "nine\n", begin: 90, end: 95 });
  expect(second).toMatchObject({ cut: true, end: 95 });
  expect(textOf(second)).toBe("one\nnine\n");
});

test("a long log is cut at a line, and says so", () => {
  const log = append(emptyLog, { text: LINE.repeat(5_000), begin: 0, end: 500_000 });
  expect(log.cut).toBe(true);
  expect(textOf(log).length).toBeLessThan(200_000);
  expect(textOf(log).length % LINE.length).toBe(0);
});

test("a full block stays the same object while the log grows", () => {
  const before = append(emptyLog, { text: LINE.repeat(200), begin: 0, end: 20_000 });
  const after = append(before, { text: LINE, begin: 20_000, end: 20_100 });
  expect(before.blocks.length).toBeGreaterThan(1);
  expect(after.blocks[0]).toBe(before.blocks[0]);
});

test("a line without an end is cut at the limit", () => {
  let log = emptyLog;
  for (let at = 0; at < 600_000; at += 997) log = append(log, { text: "y".repeat(997), begin: at, end: at + 997 });
  expect(textOf(log).length).toBeGreaterThan(90_000);
  expect(textOf(log).length).toBeLessThan(200_000);
});
