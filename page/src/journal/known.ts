/** What is known of one turn: its entries, and the telling of them as far as it has come. */

import type { EntryKind, EntryPicture } from "../wire.ts";
import { isClosing, type Journalled } from "./entry.ts";
import { type Making, show } from "./items.ts";
import type { Log } from "./log.ts";
import { type Closed, isLate, ordered, recoveries } from "./order.ts";
import { after, afterLate, newcomer, type Standing } from "./standing.ts";
import type { Turn } from "./view.ts";

export interface Known {
  readonly log: Log;
  /** Nothing while the message of the turn is missing: its page has not been loaded. */
  readonly telling: Telling | null;
}

export interface Telling {
  readonly turn: Turn;
  readonly standing: Standing;
  readonly speaking: number | null;
  readonly lost: Making["lost"];
  readonly closed: Closed;
}

export type PicturesOf = (turnId: string) => EntryPicture[];

/** What changes how entries before it are shown. */
const UNSETTLING: ReadonlySet<EntryKind> = new Set(["turn.interrupted", "turn.recovered"]);

/** Tell a turn from all of its entries; null while its message, which is the first, is not among them. */
export function tell(id: string, entries: readonly Journalled[], picturesOf: PicturesOf): Telling | null {
  if (entries[0]?.kind !== "turn.accepted") return null;
  const inOrder = ordered(entries);
  const making: Making = { items: [], speaking: null, lost: recoveries(inOrder), picturesOf };
  for (const entry of inOrder) show(making, entry);
  const closed: Closed = new Set();
  let standing = newcomer(id);
  for (const entry of entries) {
    if (isClosing(entry)) closed.add(entry.attempt);
    standing = isLate(closed, entry) ? afterLate(standing, entry) : after(standing, entry);
  }
  return told({ standing, closed, lost: making.lost }, making);
}

/** Tell on with entries that came after all others; null when they change what is told already. */
export function tellOn(telling: Telling, entries: readonly Journalled[], picturesOf: PicturesOf): Telling | null {
  const { lost, speaking } = telling;
  const making: Making = { items: [...telling.turn.items], speaking, lost, picturesOf };
  const closed = new Set(telling.closed);
  let { standing } = telling;
  for (const entry of entries) {
    if (closed.has(entry.attempt) || UNSETTLING.has(entry.kind)) return null;
    if (isClosing(entry)) closed.add(entry.attempt);
    show(making, entry);
    standing = after(standing, entry);
  }
  return told({ standing, closed, lost }, making);
}

function told(rest: Omit<Telling, "turn" | "speaking">, { items, speaking }: Making): Telling {
  const { joined, cut, ...turn } = rest.standing;
  return { ...rest, speaking, turn: { ...turn, items } };
}
