/** As far as a session has been read: what that comes to, and where reading goes on. */

import type { JournalPage, SessionView, Usage } from "../wire.ts";
import type { Journalled } from "./entry.ts";
import { emptyView, fold } from "./fold.ts";
import { nothingUsed, sum, usedIn } from "./standing.ts";
import type { Used, View } from "./view.ts";

export interface Reading {
  readonly view: View;
  /** Nothing before the first page. */
  readonly session: SessionView | null;
  /** Where the turns before the first go on; null when there are none. */
  readonly next: string | null;
  /** What had been used up to the entry `usedUpTo`. */
  readonly used: Used;
  readonly usedUpTo: number;
}

export const unread: Reading = { view: emptyView, session: null, next: null, used: nothingUsed, usedUpTo: 0 };

/** Return a reading with a page more: the newest turns, or those before the ones that it has. */
export function withPage(reading: Reading, page: JournalPage): Reading {
  const isLater = page.seq >= reading.usedUpTo;
  return {
    view: fold(reading.view, page.entries),
    session: page.session,
    next: page.next_cursor ?? null,
    used: isLater ? usedOf(page.used) : reading.used,
    usedUpTo: isLater ? page.seq : reading.usedUpTo,
  };
}

/** Return a reading with what has just happened. */
export function withNews(reading: Reading, entries: readonly Journalled[]): Reading {
  const { usedUpTo } = reading;
  const spent = entries.filter((each) => each.kind === "usage" && each.seq > usedUpTo);
  return {
    ...reading,
    view: fold(reading.view, entries),
    used: spent.map(usedIn).reduce(sum, reading.used),
    usedUpTo: entries.reduce((highest, each) => Math.max(highest, each.seq), usedUpTo),
  };
}

/** Return the later word on a session: that of its page, or of whoever watches all of them. */
export function newer(read: SessionView | null, watched: SessionView | undefined): SessionView | null {
  if (!read || !watched) return read ?? watched ?? null;
  return watched.updated_at >= read.updated_at ? watched : read;
}

function usedOf(usage: Usage): Used {
  return {
    model: usage.model ?? "",
    input: usage.input_tokens ?? 0,
    output: usage.output_tokens ?? 0,
    cached: usage.cached_tokens ?? 0,
    costMicros: usage.cost_micros ?? 0,
  };
}
