/** Entries of a journal as they arrive: one by one from the stream, or with runs of words joined in a page. */

import type { EntryKind } from "../wire.ts";

/** One entry, or with `since` all from that one up to `seq`.  What its data holds is looked at when it is shown. */
export interface Journalled {
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: EntryKind;
  at: number;
  data: object;
  since?: number;
}

/** Return the number of the first entry that this one stands for. */
export const sinceOf = (entry: Journalled) => entry.since ?? entry.seq;

/** Return a text of an entry; what an older version or a damaged disk left there instead is none. */
export function textOf(entry: Journalled, key = "text"): string {
  const value = given(entry, key);
  return typeof value === "string" ? value : "";
}

export const given = (entry: Journalled, key: string): unknown => Reflect.get(entry.data, key);

export function countOf(entry: Journalled, key: string): number {
  const value = given(entry, key);
  return typeof value === "number" ? value : 0;
}

export const isClosing = (entry: Journalled) => CLOSING.has(entry.kind);

/** The ends of an attempt. */
const CLOSING: ReadonlySet<EntryKind> = new Set([
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "turn.interrupted",
]);

/** Return the entry that an event of the stream carries; null for what is none. */
export function parseEntry(text: string): Journalled | null {
  try {
    const found: unknown = JSON.parse(text);
    return isEntry(found) ? found : null;
  } catch {
    return null;
  }
}

function isEntry(found: unknown): found is Journalled {
  if (typeof found !== "object" || found === null) return false;
  const has = (key: string, type: string) => typeof Reflect.get(found, key) === type;
  const named = has("turn_id", "string") && has("kind", "string");
  const placed = has("seq", "number") && has("attempt", "number");
  return named && placed && has("data", "object") && Reflect.get(found, "data") !== null;
}
