/** The sessions in the sidebar: filtered, grouped by day, and loaded page by page. */

import { computed, effect, signal } from "@preact/signals";
import { get, query } from "../api.ts";
import { online } from "../connection.ts";
import { dayOf } from "../format.ts";
import { isOperator } from "../sign_in/identity.ts";
import type { PageOfChannelView, PageOfSessionView, SessionView } from "../wire.ts";
import { deleting } from "./deletion.ts";
import { sessions, updateSessions } from "./store.ts";

const PAGE_SIZE = 50;
/** The cursor per filter: null at the end, missing before the first page. */
type Cursors = ReadonlyMap<string, string | null>;

export const filter = signal<Filter>({ channel: null, archived: false });
const cursors = signal<Cursors>(new Map());
/** The names of the accounts of chat platforms. */
const accounts = signal<readonly string[]>([]);
const loadState = signal<"idle" | "loading" | "failed">("idle");

export const listedSessions = computed(() =>
  sessions.value.filter((each) => matchesFilter(filter.value, each) && !deleting.value.has(each.id)),
);
/** The channels of the filter. */
export const channels = computed(() => channelNames(sessions.value, accounts.value, filter.value.channel));
export const moreState = computed<"more" | "loading" | "failed" | "none">(() => {
  if (loadState.value !== "idle") return loadState.value;
  return cursors.value.get(queryOf(filter.value)) === null ? "none" : "more";
});

/** Load the next page for the filter. */
export async function loadMore(): Promise<void> {
  const name = queryOf(filter.value);
  const cursor = cursors.value.get(name);
  if (loadState.value === "loading" || cursor === null) return;
  loadState.value = "loading";
  try {
    const page = await get<PageOfSessionView>(
      `/api/sessions${name}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    );
    updateSessions(page.items);
    cursors.value = new Map(cursors.value).set(name, page.next_cursor ?? null);
    loadState.value = "idle";
  } catch {
    loadState.value = "failed";
  }
}

/** Load the accounts, and retry what failed while the gateway was away. */
export function startListing(): void {
  effect(() => {
    if (online.value && loadState.peek() === "failed") loadState.value = "idle";
  });
  effect(() => {
    if (online.value && isOperator.value) loadAccounts();
  });
}

async function loadAccounts(): Promise<void> {
  try {
    accounts.value = (await get<PageOfChannelView>("/api/channels")).items.map((each) => each.name);
  } catch {
    // They are loaded again when the connection is back.
  }
}

const queryOf = ({ channel, archived }: Filter) => query({ limit: PAGE_SIZE, archived, channel });

/** Which sessions are shown; without a channel, those of all channels. */
export interface Filter {
  channel: string | null;
  archived: boolean;
}

interface Group {
  heading: string;
  sessions: readonly SessionView[];
}

export const PINNED = "Pinned";

/** Return the channels to choose from: also accounts and a chosen channel whose sessions are not loaded. */
export function channelNames(
  sessions: readonly SessionView[],
  accounts: readonly string[],
  chosen: string | null,
): readonly string[] {
  const known = [...sessions.map((each) => each.channel), ...accounts, ...(chosen ? [chosen] : [])];
  return [...new Set(known)].sort();
}

export const matchesFilter = (filter: Filter, session: SessionView) =>
  session.archived === filter.archived && (!filter.channel || session.channel === filter.channel);

/** Group sessions that are sorted newest first. */
export function grouped(sessions: readonly SessionView[], now = Date.now()): Group[] {
  const groups = new Map<string, SessionView[]>();
  for (const session of [...sessions.filter((each) => each.pinned), ...sessions.filter((each) => !each.pinned)]) {
    const heading = session.pinned ? PINNED : dayOf(session.updated_at, now);
    const group = groups.get(heading) ?? [];
    groups.set(heading, group);
    group.push(session);
  }
  return [...groups].map(([heading, found]) => ({ heading, sessions: found }));
}
