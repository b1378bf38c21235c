/** The store of all sessions: listed once, then kept up to date by one stream for all tabs. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get } from "../api.ts";
import { withTabLock } from "../browser.ts";
import { type ConnectionState, connection, setConnection } from "../connection.ts";
import type { Conversation } from "../journal/conversation.ts";
import { followStream } from "../journal/stream.ts";
import { retryNow } from "../retry.ts";
import { route } from "../router.ts";
import type { PageOfSessionView, SessionView } from "../wire.ts";

const PAGE_SIZE = 50;
const HELLO_MS = 3_000;
/** The tab that holds this lock listens for all tabs, because a browser has few connections per gateway. */
const LOCK = "holdfast.activity";

/** What the listening tab tells the others; with "hello" a tab asks for the state of the connection. */
type TabMessage =
  | { kind: "event"; event: string; data: string }
  | { kind: "link"; link: ConnectionState }
  | { kind: "hello" };

type SessionsById = ReadonlyMap<string, SessionView>;

const sessionsById = signal<SessionsById>(new Map());
const hasListed = signal(false);

/** The loaded sessions, last used first. */
export const sessions: ReadonlySignal<readonly SessionView[]> = computed(() =>
  [...sessionsById.value.values()].sort((one, other) => other.updated_at - one.updated_at || compare(other.id, one.id)),
);
/** Whether the list has been loaded. */
export const listed: ReadonlySignal<boolean> = hasListed;

/** Return a session in its latest version. */
export const sessionOf = (id: string): SessionView | undefined => sessionsById.value.get(id);

/** Update sessions that were loaded or changed, unless the store has newer versions. */
export function updateSessions(found: readonly SessionView[]): void {
  storeSessions(found.filter((each) => each.seq >= (sessionsById.peek().get(each.id)?.seq ?? 0)));
}

function storeSessions(found: readonly SessionView[]): void {
  if (found.length === 0) return;
  sessionsById.value = new Map([...sessionsById.peek(), ...found.map((each) => [each.id, each] as const)]);
}

/** Remove a deleted session. */
export function dropSession(id: string): void {
  if (!sessionsById.value.has(id)) return;
  sessionsById.value = new Map([...sessionsById.value].filter(([each]) => each !== id));
}

/** Load the sessions and keep them up to date. */
export function startSessions(): void {
  const stream = new SharedStream();
  stream.start();
  refresh();
}

/** One tab listens, and tells all others. */
class SharedStream {
  readonly #channel = new BroadcastChannel(LOCK);
  /** The state of the connection, if this tab listens. */
  #connection: ConnectionState | null = null;

  start(): void {
    this.#channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
      if (data.kind === "hello") this.#answer();
      else receive(data);
    };
    this.#hello();
    // Timers of hidden tabs are slow, so a visible tab asks.
    setInterval(() => document.hidden || connection.peek() === "live" || this.#hello(), HELLO_MS);
    withTabLock(LOCK, () => new Promise<never>(() => this.#listen()));
  }

  #hello(): void {
    this.#channel.postMessage({ kind: "hello" } satisfies TabMessage);
  }

  #answer(): void {
    if (!this.#connection) return;
    this.#channel.postMessage({ kind: "link", link: this.#connection } satisfies TabMessage);
    if (this.#connection !== "live") retryNow();
  }

  #listen(): void {
    followStream("/api/events", null, {
      onEvent: ({ event, data }) => this.#tell({ kind: "event", event, data }),
      onConnection: (link) => {
        this.#connection = link;
        this.#tell({ kind: "link", link });
      },
    });
  }

  #tell(message: TabMessage): void {
    receive(message);
    if (navigator.locks) this.#channel.postMessage(message);
  }
}

function receive(message: TabMessage): void {
  if (message.kind === "event") applyEvent(message.event, message.data);
  if (message.kind !== "link") return;
  const isNew = message.link === "live" && connection.peek() !== "live";
  setConnection(message.link);
  // Events are not replayed; the list has what was missed.
  if (isNew) refresh();
}

function applyEvent(event: string, data: string): void {
  if (event === "session") storeSessions([markRecent(JSON.parse(data) as SessionView)]);
  else if (event === "gone") dropSession(markRecent(JSON.parse(data) as { id: string }).id);
  else if (event === "reset") refresh();
}

/** Sessions with an event since the list was requested: their stored version is newer. */
const recent = new Set<string>();

function markRecent<T extends { id: string }>(found: T): T {
  recent.add(found.id);
  return found;
}

/** Load the recent and the pinned sessions, and drop those that are gone. */
async function refresh(): Promise<void> {
  recent.clear();
  try {
    const [page, pinned] = await Promise.all([
      get<PageOfSessionView>(`/api/sessions?limit=${PAGE_SIZE}`),
      get<PageOfSessionView>(`/api/sessions?pinned=true&limit=${PAGE_SIZE}`),
    ]);
    sessionsById.value = withList(sessionsById.value, page, pinned.items, recent);
    hasListed.value = true;
  } catch {
    // The list loads again when the connection is back.
  }
}

/** Return the sessions after a list: those that should be on its first page and are not were deleted. */
export function withList(
  before: SessionsById,
  { items, next_cursor }: PageOfSessionView,
  pinned: readonly SessionView[],
  recent: ReadonlySet<string>,
): SessionsById {
  const last = items.at(-1);
  const isBelow = (each: SessionView) => Boolean(next_cursor && last && each.updated_at <= last.updated_at);
  const rest = [...before].filter(([id, each]) => recent.has(id) || isBelow(each));
  const listed = [...pinned, ...items].filter((each) => !recent.has(each.id));
  return new Map([...rest, ...listed.map((each) => [each.id, each] as const)]);
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

export const currentConversation = signal<Conversation | null>(null);

/** The open session in its latest version. */
export const currentSession = computed<SessionView | null>(() => {
  const here = route.value;
  if (here.name !== "session") return null;
  const read = currentConversation.value?.id === here.id ? currentConversation.value.session.value : null;
  return read ?? sessionOf(here.id) ?? null;
});
