/**
 * The fold from journal to view: what a person sees, computed from what happened.
 *
 * The view is a function of the set of entries seen so far: any replay, split, overlap or order gives the same view.
 * It agrees with the gateway's own fold, src/holdfast/core/transcript.py.
 */

import type { EntryKind, EntryPicture } from "../wire.ts";
import {
  begin,
  type Closed,
  countWhile,
  entriesOf,
  insert,
  isClosing,
  isLate,
  isNext,
  type Journalled,
  type Log,
  ordered,
  recoveries,
} from "./entries.ts";
import { type Making, show } from "./items.ts";
import { after, afterLate, newcomer, type Standing } from "./turn_status.ts";
import type { Turn, View } from "./view.ts";

/** More than this is put to what is shared, which costs as much as there is. */
const RECENT_MAX = 64;

export class Shelf<T> {
  constructor(
    readonly settled: ReadonlyMap<string, T> = new Map(),
    readonly recent: ReadonlyMap<string, T> = new Map(),
  ) {}

  get(key: string): T | undefined {
    return this.recent.get(key) ?? this.settled.get(key);
  }

  /** Return the version in which some keys have other values. */
  with(changes: ReadonlyMap<string, T>): Shelf<T> {
    const recent = new Map([...this.recent, ...changes]);
    return recent.size <= RECENT_MAX
      ? new Shelf(this.settled, recent)
      : new Shelf(new Map([...this.settled, ...recent]));
  }
}

export const emptyView: View = { seq: 0, turns: [], known: new Shelf() };

/** What came for a turn behind all that it had; null when something came between. */
type Appended = Journalled[] | null;

/** Return the view with some more entries in it.  What they do not touch is the same object as before. */
export function fold(view: View, entries: readonly Journalled[]): View {
  const known = new Changes(view.known);
  const fresh = gather(known, entries);
  if (fresh.size === 0) return view;
  for (const [id, appended] of fresh) retell(known, id, appended);
  const hosts = [...fresh.keys()].flatMap((id) => hostOf(known, id) ?? []);
  for (const id of new Set(hosts)) retell(known, id, null);
  const seq = entries.reduce((highest, each) => Math.max(highest, each.seq), view.seq);
  return { seq, turns: placed(view.turns, known.made), known: view.known.with(known.made) };
}

/** What is known of turns, with what becomes of some of them. */
class Changes {
  readonly made = new Map<string, Known>();

  constructor(readonly before: Shelf<Known>) {}

  get(id: string): Known | undefined {
    return this.made.get(id) ?? this.before.get(id);
  }

  set(id: string, known: Known): void {
    this.made.set(id, known);
  }
}

/** Put entries to those of their turns, and return what is new, by turn. */
function gather(known: Changes, entries: readonly Journalled[]): Map<string, Appended> {
  const fresh = new Map<string, Appended>();
  for (const entry of entries) {
    const id = entry.turn_id;
    const before = known.get(id);
    const log = before ? insert(before.log, entry) : begin(entry);
    if (log === before?.log) continue;
    const appended = fresh.has(id) ? fresh.get(id)! : [];
    const next = !before || isNext(before.log, entry);
    fresh.set(id, next && appended ? appended : null);
    if (next) appended?.push(entry);
    known.set(id, { log, telling: before?.telling ?? null });
  }
  return fresh;
}

function retell(known: Changes, id: string, appended: Appended): void {
  const before = known.get(id);
  if (!before) return;
  const picturesOf = (joined: string) => pictures(known, joined, id);
  const onward = appended && before.telling ? tellOn(before.telling, appended, picturesOf) : null;
  known.set(id, { ...before, telling: onward ?? tell(id, entriesOf(before.log), picturesOf) });
}

/** Return the turn that shows the pictures of another, because its message became a part of it. */
function hostOf(known: Changes, id: string): string | undefined {
  const host = known.get(id)?.telling?.standing.joined ?? undefined;
  return host && pictures(known, id, host).length > 0 ? host : undefined;
}

function pictures(known: Changes, id: string, host: string): EntryPicture[] {
  const telling = known.get(id)?.telling;
  if (telling?.standing.joined !== host) return [];
  return telling.turn.items.flatMap((each) => (each.role === "user" && each.joinedFrom === null ? each.images : []));
}

/** Return all turns in the order of their acceptance, with those that changed in their places. */
function placed(turns: readonly Turn[], changed: ReadonlyMap<string, Known>): Turn[] {
  const next = [...turns];
  for (const [id, { telling }] of changed) {
    if (!telling) continue;
    const { order } = telling.turn;
    const at = countWhile(next, (each) => each.order < order);
    next.splice(at, next[at]?.id === id ? 1 : 0, telling.turn);
  }
  return next;
}

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
