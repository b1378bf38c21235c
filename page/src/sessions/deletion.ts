/** Deletes sessions with an undo: gone from the page at once, from the gateway a few seconds later. */

import { computed, signal } from "@preact/signals";
import { Refused, remove } from "../api.ts";
import { localStore } from "../browser.ts";
import { isTransient } from "../retry.ts";
import { go, route, to } from "../router.ts";
import { proof } from "../signing.ts";
import { showError, showToast } from "../ui/toast.tsx";
import type { SessionView } from "../wire.ts";
import { dropSession } from "./store.ts";

/** How long a deletion can be undone. */
const UNDO_MS = 8_000;
const RETRY_MS = 5_000;
/** How long after its time a deletion is left to the tab that began it. */
const GRACE_MS = 2_000;
/** Stored, so that a deletion survives a closed page. */
const STORAGE_KEY = "holdfast.deleting";

/** Sessions to delete, each with the time when it is due. */
type Pending = Readonly<Record<string, number>>;

const pending = signal<Pending>(storedDeletions());
/** The deletions of this tab, with signed headers: a page that is being closed has no time to sign. */
const owned = new Map<string, Record<string, string>>();

export const deleting = computed(() => new Set(Object.keys(pending.value)));

/** Hide a session, and offer to undo. */
export function removeSession(session: SessionView): void {
  storeDeletions({ ...storedDeletions(), [session.id]: Date.now() + UNDO_MS });
  const here = route.value;
  const wasOpen = here.name === "session" && here.id === session.id;
  if (wasOpen) go(to.new(), { replace: true });
  const back = () => {
    cancelDeletion(session.id);
    if (wasOpen) go(to.session(session.id), { replace: true });
  };
  showToast(`“${session.label}” is deleted.`, { action: { label: "Undo", run: back }, shownMs: UNDO_MS });
  schedule(session.id, UNDO_MS);
}

/** Finish the deletions of an earlier page, and those of this page when it is closed. */
export function startDeletion(): void {
  for (const [id, due] of Object.entries(pending.value)) schedule(id, Math.max(0, due - Date.now()));
  addEventListener("storage", (event) => {
    if (event.key === STORAGE_KEY) follow(storedDeletions());
  });
  addEventListener("pagehide", (event) => {
    if (!event.persisted) [...deleting.value].filter((id) => owned.has(id)).forEach(deleteWhileLeaving);
  });
}

/** Take over what another tab deletes, lest that tab is closed and its last request is lost. */
function follow(theirs: Pending): void {
  pending.value = theirs;
  for (const [id, due] of Object.entries(theirs)) {
    if (!owned.has(id)) setTimeout(() => deleteNow(id), due + GRACE_MS - Date.now());
  }
}

function schedule(id: string, inMs: number): void {
  owned.set(id, {});
  proof("DELETE", path(id)).then((signed) => owned.set(id, signed));
  setTimeout(() => deleteNow(id), inMs);
}

async function deleteNow(id: string): Promise<void> {
  const due = storedDeletions()[id];
  // It was undone, here or in another tab.
  if (due === undefined) return;
  // It was undone and begun again.
  if (due > Date.now()) return void setTimeout(() => deleteNow(id), due - Date.now());
  try {
    await remove(path(id));
  } catch (error) {
    if (!(error instanceof Refused) || isTransient(error.status)) return schedule(id, RETRY_MS);
    if (error.status !== 404) {
      cancelDeletion(id);
      showError(error);
      return;
    }
  }
  dropSession(id);
  cancelDeletion(id);
}

/** Sent without waiting for an answer: if it fails, the next page tries again. */
function deleteWhileLeaving(id: string): void {
  fetch(path(id), { method: "DELETE", headers: owned.get(id) ?? {}, keepalive: true }).catch(() => undefined);
}

const path = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

function cancelDeletion(id: string): void {
  const { [id]: _, ...rest } = storedDeletions();
  storeDeletions(rest);
}

function storeDeletions(next: Pending): void {
  localStore.set(STORAGE_KEY, JSON.stringify(next));
  pending.value = next;
}

function storedDeletions(): Pending {
  try {
    const found: unknown = JSON.parse(localStore.get(STORAGE_KEY) ?? "{}");
    const entries = Object.entries(found ?? {}).filter((each): each is [string, number] => typeof each[1] === "number");
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}
