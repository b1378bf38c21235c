/** The store of all sessions: listed once, then kept up to date by one stream for all tabs. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get } from "../api.ts";
import { alone } from "../browser.ts";
import { type Link, link, report } from "../connection.ts";
import type { Conversation } from "../journal/conversation.ts";
import { follow } from "../journal/stream.ts";
import { wake } from "../retry.ts";
import { place } from "../router.ts";
import type { PageOfSessionView, SessionView } from "../wire.ts";

const LISTED = 50;
const HELLO_MS = 3_000;
/** The tab that has this lock listens for all, because a browser has few connections for one gateway. */
const LOCK = "holdfast.activity";

/** What the tab that listens tells the others; with "hello" somebody asks how the link is. */
type News = { kind: "event"; event: string; data: string } | { kind: "link"; link: Link } | { kind: "hello" };

type Known = ReadonlyMap<string, SessionView>;

const known = signal<Known>(new Map());
const hasListed = signal(false);

/** Those that are known, last used first. */
export const sessions: ReadonlySignal<readonly SessionView[]> = computed(() =>
  [...known.value.values()].sort((one, other) => other.updated_at - one.updated_at || compare(other.id, one.id)),
);
/** Whether the list has been read at all. */
export const listed: ReadonlySignal<boolean> = hasListed;

/** Return a session as it was last heard of. */
export const sessionOf = (id: string): SessionView | undefined => known.value.get(id);

/** Take sessions as somebody has read or changed them, unless more has been heard of them since. */
export function learn(found: readonly SessionView[]): void {
  put(found.filter((each) => each.seq >= (known.peek().get(each.id)?.seq ?? 0)));
}

function put(found: readonly SessionView[]): void {
  if (found.length === 0) return;
  known.value = new Map([...known.peek(), ...found.map((each) => [each.id, each] as const)]);
}

/** Leave out a session that is deleted. */
export function forget(id: string): void {
  if (!known.value.has(id)) return;
  known.value = new Map([...known.value].filter(([each]) => each !== id));
}

/** Begin to watch all sessions. */
export function startActivity(): void {
  const watch = new Watch();
  watch.start();
  list();
}

/** One listens, and all know. */
class Watch {
  readonly #channel = new BroadcastChannel(LOCK);
  /** How the link is, if it is this tab that listens. */
  #link: Link | null = null;

  start(): void {
    this.#channel.onmessage = ({ data }: MessageEvent<News>) => {
      if (data.kind === "hello") this.#answer();
      else take(data);
    };
    this.#hello();
    // The clock of a hidden tab goes slowly: whoever is looked at does not wait for it.
    setInterval(() => document.hidden || link.peek() === "live" || this.#hello(), HELLO_MS);
    alone(LOCK, () => new Promise<never>(() => this.#listen()));
  }

  #hello(): void {
    this.#channel.postMessage({ kind: "hello" } satisfies News);
  }

  #answer(): void {
    if (!this.#link) return;
    this.#channel.postMessage({ kind: "link", link: this.#link } satisfies News);
    if (this.#link !== "live") wake();
  }

  #listen(): void {
    follow("/api/events", null, {
      onEvent: ({ event, data }) => this.#tell({ kind: "event", event, data }),
      onLink: (link) => {
        this.#link = link;
        this.#tell({ kind: "link", link });
      },
    });
  }

  #tell(news: News): void {
    take(news);
    if (navigator.locks) this.#channel.postMessage(news);
  }
}

function take(news: News): void {
  if (news.kind === "event") hear(news.event, news.data);
  if (news.kind !== "link") return;
  const isNew = news.link === "live" && link.peek() !== "live";
  report(news.link);
  // Nothing is replayed: what was missed is in the list.
  if (isNew) list();
}

function hear(event: string, data: string): void {
  if (event === "session") put([heard(JSON.parse(data) as SessionView)]);
  else if (event === "gone") forget(heard(JSON.parse(data) as { id: string }).id);
  else if (event === "reset") list();
}

/** What was heard of since the list was asked for is newer than the list. */
const recent = new Set<string>();

function heard<T extends { id: string }>(found: T): T {
  recent.add(found.id);
  return found;
}

/** Read the sessions that were used last, and those that are pinned; leave out what is not there any more. */
async function list(): Promise<void> {
  recent.clear();
  try {
    const [page, pinned] = await Promise.all([
      get<PageOfSessionView>(`/api/sessions?limit=${LISTED}`),
      get<PageOfSessionView>(`/api/sessions?pinned=true&limit=${LISTED}`),
    ]);
    known.value = refreshed(known.value, page, pinned.items, recent);
    hasListed.value = true;
  } catch {
    // Whoever watches hears of it as soon as the gateway is back, and lists again.
  }
}

/** Return what is known after a list: whatever would stand on its first page, and does not, is gone. */
export function refreshed(
  before: Known,
  { items, next_cursor }: PageOfSessionView,
  pinned: readonly SessionView[],
  recent: ReadonlySet<string>,
): Known {
  const last = items.at(-1);
  const isBelow = (each: SessionView) => Boolean(next_cursor && last && each.updated_at <= last.updated_at);
  const rest = [...before].filter(([id, each]) => recent.has(id) || isBelow(each));
  const listed = [...pinned, ...items].filter((each) => !recent.has(each.id));
  return new Map([...rest, ...listed.map((each) => [each.id, each] as const)]);
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

export const current = signal<Conversation | null>(null);

/** The open session, as it was last heard of. */
export const currentSession = computed<SessionView | null>(() => {
  const here = place.value;
  if (here.name !== "session") return null;
  const read = current.value?.id === here.id ? current.value.session.value : null;
  return read ?? sessionOf(here.id) ?? null;
});
