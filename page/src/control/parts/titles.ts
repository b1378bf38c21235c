/** What people call the sessions that control pages name by their ids. */

import { signal } from "@preact/signals";
import { get, Refused } from "../../api.ts";
import type { PageOfSessionView, SessionView } from "../../wire.ts";

/** So many sessions are asked for at once; of older ones each is asked for by itself. */
const FIRST = 200;
const KEPT_MAX = 5_000;

/** By id; null is the title of a session that is not there any more. */
const titles = signal<ReadonlyMap<string, string | null>>(new Map());
const wanted = new Set<string>();
let looking = false;

/** Return what a session is called: undefined until that is known, null when it has been deleted. */
export function titleOf(id: string): string | null | undefined {
  const known = titles.value.get(id);
  if (known === undefined) want(id);
  return known;
}

function want(id: string): void {
  wanted.add(id);
  if (looking) return;
  looking = true;
  // Whatever else is drawn now asks for its titles together with this one.
  setTimeout(async () => {
    await look();
    looking = false;
  });
}

async function look(): Promise<void> {
  try {
    const { items } = await get<PageOfSessionView>(`/api/sessions?limit=${FIRST}`);
    learn(items.map((session) => [session.id, session.label]));
    for (const id of wanted) learn([[id, await ask(id)]]);
  } catch {
    // The next time that something is drawn asks again.
  }
}

async function ask(id: string): Promise<string | null> {
  try {
    return (await get<SessionView>(`/api/sessions/${encodeURIComponent(id)}`)).label;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

function learn(found: readonly (readonly [string, string | null])[]): void {
  const before = titles.peek().size < KEPT_MAX ? titles.peek() : new Map<string, string | null>();
  titles.value = new Map([...before, ...found]);
  for (const [id] of found) wanted.delete(id);
}
