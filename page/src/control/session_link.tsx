/** Links to sessions that a control page knows only by id. */

import { signal } from "@preact/signals";
import { get, Refused } from "../api.ts";
import { to } from "../router.ts";
import { sessionOf } from "../sessions/store.ts";
import type { SessionView } from "../wire.ts";

/** A link to the conversation, and the turn in it, that something belongs to. */
export function SessionLink({ sessionId, turnId = null }: { sessionId: string; turnId?: string | null }) {
  const title = titleOf(sessionId);
  if (title === null) return <span class="faint">a conversation that is deleted</span>;
  return (
    <a class="origin" href={to.session(sessionId, turnId)}>
      {title ?? "Conversation"}
    </a>
  );
}

const TITLES_MAX = 5_000;

/** Of those that are not among the known ones, by id; null is the title of a session that is not there any more. */
const titles = signal<ReadonlyMap<string, string | null>>(new Map());
const wanted = new Set<string>();
let fetching = false;

/** Return what a session is called: undefined until that is known, null when it has been deleted. */
function titleOf(id: string): string | null | undefined {
  const known = sessionOf(id)?.label ?? titles.value.get(id);
  if (known === undefined) requestTitle(id);
  return known;
}

function requestTitle(id: string): void {
  wanted.add(id);
  if (fetching) return;
  fetching = true;
  // After what is drawn now, and one after the other: a browser has few connections.
  setTimeout(async () => {
    await fetchTitles();
    fetching = false;
  });
}

async function fetchTitles(): Promise<void> {
  try {
    for (const id of wanted) {
      storeTitle(id, await fetchTitle(id));
      wanted.delete(id);
    }
  } catch {
    // The next time that something is drawn asks again.
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
