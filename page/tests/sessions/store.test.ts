// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { dropSession, sessionOf, sessions, updateSessions, withList } from "../../src/sessions/store.ts";
import type { SessionView } from "../../src/wire.ts";
import { UNSAID } from "./session.ts";

function session(id: string, updated_at: number, more: Partial<SessionView> = {}): SessionView {
  const never = { ended_at: null, end_reason: null, auto_reset_reason: null, resume_reason: null, parent_id: null };
  const plain = { resume_pending: false, one_shot: false, pinned: false, archived: false, turns: 0, seq: 0 };
  const named = { key: id, channel: "web", state: "open", title: null, label: id, activity: null } as const;
  const origin = { source: UNSAID, model: null, chosen_model: null };
  return { id, created_at: 0, updated_at, ...never, ...plain, ...named, ...origin, ...more };
}

const known = (...found: SessionView[]) => new Map(found.map((each) => [each.id, each]));
const ids = (found: ReadonlyMap<string, SessionView>) => [...found.keys()].sort();

test("the last used session comes first, and a deleted one is gone", () => {
  updateSessions([session("a", 1), session("b", 3), session("c", 2)]);
  updateSessions([session("a", 4)]);
  dropSession("c");
  expect(sessions.value.map((each) => each.id)).toEqual(["a", "b"]);
});

test("a list drops missing sessions of its own range only", () => {
  const before = known(session("deleted", 9), session("old", 2), session("new", 8));
  const page = { items: [session("new", 8), session("other", 5)], next_cursor: "more" };
  expect(ids(withList(before, page, [], new Set()))).toEqual(["new", "old", "other"]);
  expect(ids(withList(before, { ...page, next_cursor: null }, [], new Set()))).toEqual(["new", "other"]);
});

test("an event during the list request is newer than the list", () => {
  const before = known(session("renamed", 5, { label: "new name" }), session("opened", 9));
  const page = { items: [session("gone", 6), session("renamed", 5)], next_cursor: null };
  const after = withList(before, page, [session("pinned", 1)], new Set(["renamed", "opened", "gone"]));
  expect(ids(after)).toEqual(["opened", "pinned", "renamed"]);
  expect(after.get("renamed")?.label).toBe("new name");
});

test("an outdated answer changes nothing", () => {
  updateSessions([session("busy", 5, { seq: 7, activity: "running" })]);
  updateSessions([session("busy", 6, { seq: 9, activity: null })]);
  updateSessions([session("busy", 5, { seq: 8, activity: "running" })]);
  expect(sessionOf("busy")).toMatchObject({ seq: 9, activity: null });
  updateSessions([session("busy", 6, { seq: 9, pinned: true })]);
  expect(sessionOf("busy")?.pinned).toBe(true);
});
