/** The sessions of the sidebar: those that are known, as the filter wants them, and more of them on request. */

import { computed, effect, signal } from "@preact/signals";
import { learn, sessions } from "../activity.ts";
import { get, query } from "../api.ts";
import { online } from "../connection.ts";
import type { PageOfSessionView } from "../wire.ts";
import { deleting } from "./deletion.ts";
import { type Filter, shows } from "./groups.ts";

const PAGE = 50;
/** Where reading goes on, by what is read: null at the end, and nothing before the first page. */
type Cursors = ReadonlyMap<string, string | null>;

export const filter = signal<Filter>({ channel: null, archived: false });
const cursors = signal<Cursors>(new Map());
const reading = signal<"idle" | "loading" | "failed">("idle");

export const shown = computed(() =>
  sessions.value.filter((each) => shows(filter.value, each) && !deleting.value.has(each.id)),
);
/** The channels that there is a session of. */
export const channels = computed(() => [...new Set(sessions.value.map((each) => each.channel))].sort());
export const more = computed<"more" | "loading" | "failed" | "none">(() => {
  if (reading.value !== "idle") return reading.value;
  return cursors.value.get(nameOf(filter.value)) === null ? "none" : "more";
});

/** Read the next page of what the filter wants. */
export async function loadMore(): Promise<void> {
  const name = nameOf(filter.value);
  const cursor = cursors.value.get(name);
  if (reading.value === "loading" || cursor === null) return;
  reading.value = "loading";
  try {
    const page = await get<PageOfSessionView>(
      `/api/sessions${name}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    );
    learn(page.items);
    cursors.value = new Map(cursors.value).set(name, page.next_cursor ?? null);
    reading.value = "idle";
  } catch {
    reading.value = "failed";
  }
}

/** Let what failed while the gateway was away be read when it is back. */
export function startListing(): void {
  effect(() => {
    if (online.value && reading.peek() === "failed") reading.value = "idle";
  });
}

const nameOf = ({ channel, archived }: Filter) => query({ limit: PAGE, archived, channel });
