// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { deleting, removeSession, startDeletion } from "../../src/sessions/deletion.ts";
import { session } from "./session.ts";

const KEPT = "holdfast.deleting";

test("a closing tab finishes its own deletions, and leaves those of other tabs", () => {
  const asked: string[] = [];
  globalThis.fetch = async (input) => {
    asked.push(String(input));
    return Response.json({});
  };
  startDeletion();
  removeSession(session({ id: "own" }));
  localStorage.setItem(KEPT, JSON.stringify({ own: Date.now() + 8_000, other: Date.now() + 8_000 }));
  dispatchEvent(new StorageEvent("storage", { key: KEPT }));
  expect([...deleting.value]).toEqual(["own", "other"]);
  dispatchEvent(new Event("pagehide"));
  expect(asked).toEqual(["/api/sessions/own"]);
});
