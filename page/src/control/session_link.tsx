/** Links to sessions that a control page knows only by id. */

import { signal } from "@preact/signals";
import { get, Refused } from "../api.ts";
import { to } from "../router.ts";
import { sessionOf } from "../sessions/store.ts";
import type { SessionView } from "../wire.ts";

/** A link to a conversation, and to a turn in it. */
export function SessionLink({ sessionId, turnId = null }: { sessionId: string; turnId?: string | null }) {
  const title = titleOf(sessionId);
  if (title === null) return <span class="faint">a deleted conversation</span>;
  return (
    <a class="origin" href={to.session(sessionId, turnId)}>
      {title ?? "Conversation"}
    </a>
  );
}

const TITLES_MAX = 5_000;

/** Titles by id, of sessions that the store does not hold; null for a deleted session. */
const titles = signal<ReadonlyMap<string, string | null>>(new Map());
const missing = new Set<string>();
let fetching = false;

/** Return the title of a session: undefined until it is loaded, null if the session was deleted. */
function titleOf(id: string): string | null | undefined {
  const title = sessionOf(id)?.label ?? titles.value.get(id);
  if (title === undefined) requestTitle(id);
  return title;
}

function requestTitle(id: string): void {
  missing.add(id);
  if (fetching) return;
  fetching = true;
  // After this render, one request at a time: a browser has few connections.
  setTimeout(async () => {
    await fetchTitles();
    fetching = false;
  });
}

async function fetchTitles(): Promise<void> {
  try {
    for (const id of missing) {
      storeTitle(id, await fetchTitle(id));
      missing.delete(id);
    }
  } catch {
    // The next render tries again.
  }
}

async function fetchTitle(id: string): Promise<string | null> {
  try {
    return (await get<SessionView>(`/api/sessions/${encodeURIComponent(id)}`)).label;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

function storeTitle(id: string, title: string | null): void {
  const before = titles.peek().size < TITLES_MAX ? titles.peek() : [];
  titles.value = new Map([...before, [id, title]]);
}
