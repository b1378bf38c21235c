// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { deleting, removeSession, startDeletion } from "../../src/sessions/deletion.ts";
import { session } from "./session.ts";

const KEPT = "holdfast.deleting";

let asked: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  globalThis.fetch = async (input) => {
    asked.push(String(input));
    return Response.json({});
  };
});

afterEach(() => {
  vi.useRealTimers();
});

/** Another tab stores these deletions, each with the time until it is due. */
function storeElsewhere(dueIn: Record<string, number>): void {
  const due = Object.entries(dueIn).map(([id, ms]) => [id, Date.now() + ms]);
  localStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(due)));
  dispatchEvent(new StorageEvent("storage", { key: KEPT }));
}

test("a closing tab finishes its own deletions, and leaves those of other tabs", () => {
  startDeletion();
  removeSession(session({ id: "own" }));
  storeElsewhere({ own: 8_000, other: 8_000 });
  expect([...deleting.value]).toEqual(["own", "other"]);
  dispatchEvent(new Event("pagehide"));
  expect(asked).toEqual(["/api/sessions/own"]);
});

test("what another tab was to delete is deleted a little later, if that tab is gone", async () => {
  storeElsewhere({ theirs: 8_000 });
  await vi.advanceTimersByTimeAsync(8_000);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(asked).toEqual(["/api/sessions/theirs"]);
  expect([...deleting.value]).toEqual([]);
});

test("what another tab deleted or undid is left alone", async () => {
  storeElsewhere({ theirs: 8_000 });
  storeElsewhere({});
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toEqual([]);
});

test("a deletion that was undone and begun again can be undone for as long", async () => {
  storeElsewhere({});
  removeSession(session({ id: "twice" }));
  await vi.advanceTimersByTimeAsync(7_000);
  removeSession(session({ id: "twice" }));
  await vi.advanceTimersByTimeAsync(7_000);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toContain("/api/sessions/twice");
});
