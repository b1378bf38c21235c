// @vitest-environment happy-dom
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { offsets, rowAt, spanAt } from "../../src/conversation/scroller.ts";

const heights = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 });

describe("the visible rows", () => {
  it("are all drawn, and the space for the others has their height", () => {
    fc.assert(
      fc.property(
        heights,
        fc.integer({ min: -100, max: 20_000 }),
        fc.integer({ min: 1, max: 900 }),
        (rows, top, sight) => {
          const starts = offsets(rows);
          const total = starts.at(-1)!;
          const { from, to, above, below } = spanAt(starts, top, sight, 50);
          expect(above + rows.slice(from, to).reduce((sum, row) => sum + row, 0) + below).toBe(total);
          const inSight = rows.map((row, index) => starts[index]! < top + sight && starts[index]! + row > top);
          expect(inSight.every((seen, index) => !seen || (index >= from && index < to))).toBe(true);
        },
      ),
    );
  });

  it("are few in a long list", () => {
    const starts = offsets(Array.from({ length: 10_000 }, () => 200));
    expect(spanAt(starts, 1_000_000, 800, 800)).toEqual({ from: 4_996, to: 5_009, above: 999_200, below: 998_200 });
    expect(spanAt(starts, 2_000_000 - 800, 800, 800)).toMatchObject({ to: 10_000, below: 0 });
  });

  it("are found by a point, even at the edges", () => {
    const starts = offsets([10, 20, 30]);
    expect([-5, 0, 9, 10, 29, 30, 59, 60, 99].map((point) => rowAt(starts, point))).toEqual([
      0, 0, 0, 1, 1, 2, 2, 2, 2,
    ]);
    expect(spanAt(offsets([]), 0, 100, 100)).toEqual({ from: 0, to: 0, above: 0, below: 0 });
  });
});
