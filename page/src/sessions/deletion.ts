/** Deletes sessions with an undo: gone from the page at once, from the gateway a few seconds later. */

import { computed, signal } from "@preact/signals";
import { Refused, remove } from "../api.ts";
import { pocket } from "../browser.ts";
import { mayPass } from "../retry.ts";
import { go, place, to } from "../router.ts";
import { proof } from "../signing.ts";
import { tell, tellProblem } from "../ui/toast.tsx";
import type { SessionView } from "../wire.ts";
import { forget } from "./store.ts";

/** How long one can think better of it. */
const UNDO_MS = 8_000;
const AGAIN_MS = 5_000;
/** Kept, so that what was deleted stays so when the page is closed before. */
const KEPT = "holdfast.deleting";

/** Sessions to be deleted, each with the time at which it will be. */
type Pending = Readonly<Record<string, number>>;

const pending = signal<Pending>(kept());
/** Those that this tab sees to; what another one deletes can still be undone there.  A page that is closed has no time to sign. */
const own = new Map<string, Record<string, string>>();

export const deleting = computed(() => new Set(Object.keys(pending.value)));

/** Take a session away, and say how to get it back. */
export function removeSession(session: SessionView): void {
  keep({ ...kept(), [session.id]: Date.now() + UNDO_MS });
  const here = place.value;
  const wasOpen = here.name === "session" && here.id === session.id;
  if (wasOpen) go(to.new(), { replace: true });
  const back = () => {
    bringBack(session.id);
    if (wasOpen) go(to.session(session.id), { replace: true });
  };
  tell(`“${session.label}” is deleted.`, { action: { label: "Undo", run: back }, shownMs: UNDO_MS });
  schedule(session.id, UNDO_MS);
}

/** Finish what an earlier page left, and leave nothing behind when this one is closed. */
export function startDeletion(): void {
  for (const [id, due] of Object.entries(pending.value)) schedule(id, Math.max(0, due - Date.now()));
  addEventListener("storage", (event) => {
    if (event.key === KEPT) pending.value = kept();
  });
  addEventListener("pagehide", (event) => {
    if (!event.persisted) [...deleting.value].filter((id) => own.has(id)).forEach(deleteWhileLeaving);
  });
}

function schedule(id: string, inMs: number): void {
  own.set(id, {});
  proof("DELETE", path(id)).then((signed) => own.set(id, signed));
  setTimeout(() => deleteNow(id), inMs);
}

async function deleteNow(id: string): Promise<void> {
  // Another tab may have brought it back.
  if (!(id in kept())) return;
  try {
    await remove(path(id));
  } catch (error) {
    if (!(error instanceof Refused) || mayPass(error.status)) return schedule(id, AGAIN_MS);
    if (error.status !== 404) {
      bringBack(id);
      tellProblem(error);
      return;
    }
  }
  forget(id);
  bringBack(id);
}

/** Without waiting for the answer: if it comes to nothing, the next page tries again. */
function deleteWhileLeaving(id: string): void {
  fetch(path(id), { method: "DELETE", headers: own.get(id) ?? {}, keepalive: true }).catch(() => undefined);
}

const path = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

function bringBack(id: string): void {
  const { [id]: _, ...rest } = kept();
  keep(rest);
}

function keep(next: Pending): void {
  pocket.set(KEPT, JSON.stringify(next));
  pending.value = next;
}

function kept(): Pending {
  try {
    const found: unknown = JSON.parse(pocket.get(KEPT) ?? "{}");
    const entries = Object.entries(found ?? {}).filter((each): each is [string, number] => typeof each[1] === "number");
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}
