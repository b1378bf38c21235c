import { expect, test } from "vitest";
import { bytes, dayOf, duration, lead, price, relative, tokens } from "../src/format.ts";

const NOON = new Date(2031, 4, 14, 12).getTime();
const DAY = 86_400_000;

test("durations are short, and never say sixty", () => {
  expect([3, 949, 950, 9_949, 9_950, 59_400].map(duration)).toEqual([
    "3 ms",
    "949 ms",
    "0.9 s",
    "9.9 s",
    "10 s",
    "59 s",
  ]);
  expect([59_999, 61_000, 3_599_000, 3_599_999, DAY].map(duration)).toEqual([
    "1 min 0 s",
    "1 min 1 s",
    "59 min 59 s",
    "1 h 0 min",
    "1 d 0 h",
  ]);
});

test("moments are relative to now", () => {
  expect(relative(NOON + 90_000, NOON)).toBe("in 1 min 30 s");
  expect(relative(NOON - 2_000, NOON)).toBe("2.0 s ago");
  expect(relative(NOON - 10, NOON)).toBe("now");
});

test("days change at midnight, not after 24 hours", () => {
  const ago = [0, 0.4, 0.6, 1.4, 1.6, 6, 20, 40].map((days) => dayOf(NOON - days * DAY, NOON));
  const week = "Previous 7 days";
  expect(ago.slice(0, 7)).toEqual(["Today", "Today", "Yesterday", "Yesterday", week, week, "Previous 30 days"]);
  expect(ago[7]).toContain("2031");
});

test("large amounts are rounded", () => {
  expect([9_999, 12_345, 2_500_000].map(tokens).map((each) => each.replace(/\D/g, ""))).toEqual(["9999", "123", "250"]);
  expect([0, 1_023, 1_536, 20 * 1_024 ** 2].map(bytes)).toEqual(["0 B", "1023 B", "1.5 KB", "20 MB"]);
  expect([50, 1_234, 12_500_000].map(price)).toEqual(["under $0.0001", "$0.0012", "$12.50"]);
});

test("a clock is ahead or behind", () => {
  expect([7_200_000, -61_000].map(lead)).toEqual(["2 h 0 min ahead", "1 min 1 s behind"]);
});
