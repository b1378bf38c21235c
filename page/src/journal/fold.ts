/**
 * The fold from journal to view: what a person sees, computed from what happened.
 *
 * The view is a function of the set of entries seen so far: any replay, split, overlap or order gives the same view.
 * It agrees with the gateway's own fold, src/holdfast/core/transcript.py.
 */

import type { EntryKind, EntryPicture } from "../wire.ts";
import {
  countLeading,
  type EndedAttempts,
  endsAttempt,
  entriesOf,
  inReadingOrder,
  insertEntry,
  isAfterLog,
  isLate,
  type JournalEntry,
  type Log,
  newLog,
  recoveries,
} from "./entries.ts";
import { type ItemsBuilder, showEntry } from "./items.ts";
import { newTurnStatus, statusAfter, statusAfterLate, type TurnStatus } from "./turn_status.ts";
import type { Turn, View } from "./view.ts";

/** More changes than this are merged into the shared map, which costs as much as the map is large. */
const RECENT_MAX = 64;

export class PersistentMap<T> {
  constructor(
    readonly settled: ReadonlyMap<string, T> = new Map(),
    readonly recent: ReadonlyMap<string, T> = new Map(),
  ) {}

  get(key: string): T | undefined {
    return this.recent.get(key) ?? this.settled.get(key);
  }

  /** Return a version with some keys changed. */
  with(changes: ReadonlyMap<string, T>): PersistentMap<T> {
    const recent = new Map([...this.recent, ...changes]);
    return recent.size <= RECENT_MAX
      ? new PersistentMap(this.settled, recent)
      : new PersistentMap(new Map([...this.settled, ...recent]));
  }
}

export const emptyView: View = { seq: 0, turns: [], turnFolds: new PersistentMap() };

/** The entries that came after all others of a turn; null if one came between. */
type Appended = JournalEntry[] | null;

/** Return the view with more entries.  Turns that they do not touch stay the same objects. */
export function fold(view: View, entries: readonly JournalEntry[]): View {
  const folds = new Changes(view.turnFolds);
  const fresh = addEntries(folds, entries);
  if (fresh.size === 0) return view;
  for (const [id, appended] of fresh) refold(folds, id, appended);
  const hosts = [...fresh.keys()].flatMap((id) => joinedTurnOf(folds, id) ?? []);
  for (const id of new Set(hosts)) refold(folds, id, null);
  const seq = entries.reduce((highest, each) => Math.max(highest, each.seq), view.seq);
  return { seq, turns: placedTurns(view.turns, folds.made), turnFolds: view.turnFolds.with(folds.made) };
}

/** The folds of turns, with uncommitted changes. */
class Changes {
  readonly made = new Map<string, TurnFold>();

  constructor(readonly before: PersistentMap<TurnFold>) {}

  get(id: string): TurnFold | undefined {
    return this.made.get(id) ?? this.before.get(id);
  }

  set(id: string, turnFold: TurnFold): void {
    this.made.set(id, turnFold);
  }
}

/** Add entries to the logs of their turns, and return the new ones by turn. */
function addEntries(folds: Changes, entries: readonly JournalEntry[]): Map<string, Appended> {
  const fresh = new Map<string, Appended>();
  for (const entry of entries) {
    const id = entry.turn_id;
    const before = folds.get(id);
    const log = before ? insertEntry(before.log, entry) : newLog(entry);
    if (log === before?.log) continue;
    const appended = fresh.has(id) ? fresh.get(id)! : [];
    const next = !before || isAfterLog(before.log, entry);
    fresh.set(id, next && appended ? appended : null);
    if (next) appended?.push(entry);
    folds.set(id, { log, state: before?.state ?? null });
  }
  return fresh;
}

function refold(folds: Changes, id: string, appended: Appended): void {
  const before = folds.get(id);
  if (!before) return;
  const picturesOf = (joined: string) => pictures(folds, joined, id);
  const extended = appended && before.state ? extendFold(before.state, appended, picturesOf) : null;
  folds.set(id, { ...before, state: extended ?? foldTurn(id, entriesOf(before.log), picturesOf) });
}

/** Return the turn that shows the pictures of another, because that one's message joined it. */
function joinedTurnOf(folds: Changes, id: string): string | undefined {
  const host = folds.get(id)?.state?.status.joined ?? undefined;
  return host && pictures(folds, id, host).length > 0 ? host : undefined;
}

function pictures(folds: Changes, id: string, host: string): EntryPicture[] {
  const state = folds.get(id)?.state;
  if (state?.status.joined !== host) return [];
  return state.turn.items.flatMap((each) => (each.role === "user" && each.joinedFrom === null ? each.images : []));
}

/** Return all turns in order of acceptance, with the changed ones replaced. */
function placedTurns(turns: readonly Turn[], changed: ReadonlyMap<string, TurnFold>): Turn[] {
  const next = [...turns];
  for (const [id, { state }] of changed) {
    if (!state) continue;
    const { order } = state.turn;
    const at = countLeading(next, (each) => each.order < order);
    next.splice(at, next[at]?.id === id ? 1 : 0, state.turn);
  }
  return next;
}

export interface TurnFold {
  readonly log: Log;
  /** Null until the page with the turn's message is loaded. */
  readonly state: FoldState | null;
}

interface FoldState {
  readonly turn: Turn;
  readonly status: TurnStatus;
  readonly openAttempt: number | null;
  readonly recoveries: ItemsBuilder["recoveries"];
  readonly ended: EndedAttempts;
}

type PicturesOf = (turnId: string) => EntryPicture[];

/** Entries that change how earlier ones are shown. */
const REFOLDING: ReadonlySet<EntryKind> = new Set(["turn.interrupted", "turn.recovered"]);

/** Fold all entries of a turn; null if its message, the first entry, is missing. */
function foldTurn(id: string, entries: readonly JournalEntry[], picturesOf: PicturesOf): FoldState | null {
  if (entries[0]?.kind !== "turn.accepted") return null;
  const inOrder = inReadingOrder(entries);
  const builder: ItemsBuilder = { items: [], openAttempt: null, recoveries: recoveries(inOrder), picturesOf };
  for (const entry of inOrder) showEntry(builder, entry);
  const ended: EndedAttempts = new Set();
  let status = newTurnStatus(id);
  for (const entry of entries) {
    if (endsAttempt(entry)) ended.add(entry.attempt);
    status = isLate(ended, entry) ? statusAfterLate(status, entry) : statusAfter(status, entry);
  }
  return foldState({ status, ended, recoveries: builder.recoveries }, builder);
}

/** Fold entries that came after all others; null if they change what is already folded. */
function extendFold(state: FoldState, entries: readonly JournalEntry[], picturesOf: PicturesOf): FoldState | null {
  const { recoveries, openAttempt } = state;
  const builder: ItemsBuilder = { items: [...state.turn.items], openAttempt, recoveries, picturesOf };
  const ended = new Set(state.ended);
  let { status } = state;
  for (const entry of entries) {
    if (ended.has(entry.attempt) || REFOLDING.has(entry.kind)) return null;
    if (endsAttempt(entry)) ended.add(entry.attempt);
    showEntry(builder, entry);
    status = statusAfter(status, entry);
  }
  return foldState({ status, ended, recoveries }, builder);
}

function foldState(rest: Omit<FoldState, "turn" | "openAttempt">, { items, openAttempt }: ItemsBuilder): FoldState {
  const { joined, interrupted, ...turn } = rest.status;
  return { ...rest, openAttempt, turn: { ...turn, items } };
}
