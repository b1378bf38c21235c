// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { channelNames, grouped, matchesFilter, PINNED } from "../../src/sessions/listing.ts";
import { session } from "./session.ts";

const NOW = new Date(2026, 4, 20, 12).getTime();
const HOUR = 3_600_000;

test("pinned sessions come first, the others by day", () => {
  const groups = grouped(
    [
      session({ id: "today", updated_at: NOW - HOUR }),
      session({ id: "pinned", updated_at: NOW - 400 * 24 * HOUR, pinned: true }),
      session({ id: "yesterday", updated_at: NOW - 24 * HOUR }),
      session({ id: "also yesterday", updated_at: NOW - 25 * HOUR }),
    ],
    NOW,
  );
  expect(groups.map(({ heading, sessions }) => [heading, sessions.map((each) => each.id)])).toEqual([
    [PINNED, ["pinned"]],
    ["Today", ["today"]],
    ["Yesterday", ["yesterday", "also yesterday"]],
  ]);
});

test("archived sessions appear in the archive only", () => {
  const all = { channel: null, archived: false };
  expect(matchesFilter(all, session({ archived: true }))).toBe(false);
  expect(matchesFilter({ ...all, archived: true }, session({ archived: true }))).toBe(true);
  expect(matchesFilter({ ...all, archived: true }, session({}))).toBe(false);
  expect(matchesFilter({ ...all, channel: "slack" }, session({ channel: "web" }))).toBe(false);
});

test("an account can be chosen before its sessions are loaded", () => {
  const loaded = [session({ channel: "web" }), session({ channel: "telegram" })];
  expect(channelNames(loaded, ["work", "telegram"], null)).toEqual(["telegram", "web", "work"]);
  expect(channelNames([], [], "work")).toEqual(["work"]);
});
