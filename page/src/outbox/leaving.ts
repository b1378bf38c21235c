/** Messages that have left their field: written down at once, because a page can be gone before its database has them. */

import { pocket } from "../pocket.ts";
import type { Outgoing } from "./message.ts";

const PREFIX = "holdfast.leaving.";
/** A tab that is still there has put its message into the database by then. */
export const LEFT_BEHIND_MS = 5_000;

export const writeDown = (item: Outgoing) => pocket.set(PREFIX + item.key, JSON.stringify(item));

export const crossOut = (key: string) => pocket.remove(PREFIX + key);

/** Return what is written down, by this page or another, the oldest first. */
export function writtenDown(): Outgoing[] {
  const found = pocket.names(PREFIX).flatMap((name) => parse(pocket.get(name)));
  return found.sort((one, other) => one.at - other.at);
}

export const isWrittenDown = (name: string | null) => name?.startsWith(PREFIX) ?? false;

function parse(text: string | null): Outgoing[] {
  try {
    const found: Outgoing | null = JSON.parse(text ?? "null");
    return found?.key ? [found] : [];
  } catch {
    return [];
  }
}
