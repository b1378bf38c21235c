/** Which sessions have news since this browser last showed them, and the document title that counts them. */

import { effect, signal } from "@preact/signals";
import { localStore } from "../browser.ts";
import { route } from "../router.ts";
import type { SessionView } from "../wire.ts";
import { currentSession, sessions } from "./store.ts";

const STORAGE_KEY = "holdfast.seen";
/** Sessions beyond this count as seen. */
const SEEN_MAX = 2_000;

/** The last seen entry, by session. */
type Seen = ReadonlyMap<string, number>;

const seen = signal<Seen>(storedSeen());
const visible = signal(!document.hidden);

/** Whether a turn has ended, or asks something, since the session was last shown. */
export function unread(session: SessionView, before: Seen = seen.value): boolean {
  const isOver = session.activity === null || session.activity === "waiting";
  return isOver && session.seq > (before.get(session.id) ?? session.seq);
}

/** Record which sessions are shown; a session that is new to this browser counts as seen. */
export function startUnread(): void {
  document.addEventListener("visibilitychange", () => {
    visible.value = !document.hidden;
  });
  effect(() => {
    const next = withSeen(seen.peek(), sessions.value, visible.value ? openId() : null);
    if (next === seen.peek()) return;
    seen.value = next;
    localStore.set(STORAGE_KEY, JSON.stringify([...next]));
  });
}

/** Return what has been seen, given the list and the open session; the same map if nothing is new. */
export function withSeen(before: Seen, found: readonly SessionView[], open: string | null): Seen {
  const news = found.filter((each) => !before.has(each.id) || (each.id === open && before.get(each.id) !== each.seq));
  if (news.length === 0) return before;
  const next = new Map(before);
  for (const each of news) {
    // The most recent comes last, and is kept longest.
    next.delete(each.id);
    next.set(each.id, each.seq);
  }
  return next.size > SEEN_MAX ? new Map([...next].slice(-SEEN_MAX)) : next;
}

function openId(): string | null {
  return route.value.name === "session" ? route.value.id : null;
}

function storedSeen(): Seen {
  try {
    return new Map(JSON.parse(localStore.get(STORAGE_KEY) ?? "[]") as [string, number][]);
  } catch {
    return new Map();
  }
}

const NAME = "Holdfast";

export function startTitle(): void {
  effect(() => {
    const news = sessions.value.filter((each) => unread(each)).length;
    const isRunning = currentSession.value?.activity === "running";
    document.title = titled(pageTitle(), { news, isRunning });
  });
}

export function titled(here: string, { news, isRunning }: { news: number; isRunning: boolean }): string {
  return [news ? `(${news})` : "", isRunning ? "●" : "", here ? `${here} · ${NAME}` : NAME].filter(Boolean).join(" ");
}

function pageTitle(): string {
  const here = route.value;
  if (here.name === "control") return here.page[0]!.toUpperCase() + here.page.slice(1);
  return currentSession.value?.label ?? "";
}
