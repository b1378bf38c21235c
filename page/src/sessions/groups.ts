/** The list of sessions as it is shown: the pinned ones, then day by day. */

import { dayOf } from "../format.ts";
import type { SessionView } from "../wire.ts";

/** What is to be seen of all sessions; without a channel, those of all. */
export interface Filter {
  channel: string | null;
  archived: boolean;
}

export interface Group {
  heading: string;
  sessions: readonly SessionView[];
}

export const PINNED = "Pinned";

export const shows = (filter: Filter, session: SessionView) =>
  session.archived === filter.archived && (!filter.channel || session.channel === filter.channel);

/** Group sessions that come in their order, the newest first. */
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
