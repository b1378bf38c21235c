/**
 * The fold from journal to view: what a person sees, from what happened.
 *
 * What has been seen is a set of entries, and the view a function of that set: any replay, split, overlap or order
 * gives the same one.  It says the same as the fold of the gateway, src/holdfast/core/transcript.py.
 */

import type { EntryPicture } from "../wire.ts";
import type { Journalled } from "./entry.ts";
import { type Known, tell, tellOn } from "./known.ts";
import { begin, entriesOf, insert, isNext } from "./log.ts";
import { Shelf } from "./shelf.ts";
import { countWhile } from "./sorted.ts";
import type { Turn, View } from "./view.ts";

export type { Journalled } from "./entry.ts";

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
