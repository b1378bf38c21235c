/** The entries of one turn, sorted and each once.  Versions share one array, of which each sees its own length. */

import { type Journalled, sinceOf } from "./entry.ts";
import { countWhile } from "./sorted.ts";

export interface Log {
  readonly shared: Journalled[];
  readonly length: number;
}

export const begin = (entry: Journalled): Log => ({ shared: [entry], length: 1 });

export const entriesOf = (log: Log): readonly Journalled[] =>
  log.shared.length === log.length ? log.shared : log.shared.slice(0, log.length);

/** Whether an entry comes after all that are there. */
export const isNext = (log: Log, entry: Journalled) => sinceOf(entry) > log.shared[log.length - 1]!.seq;

/** Return the log with an entry in it; the very same one if all that it says is there already. */
export function insert(log: Log, entry: Journalled): Log {
  if (isNext(log, entry)) return append(log, entry);
  const entries = entriesOf(log);
  const at = countWhile(entries, (each) => each.seq < sinceOf(entry));
  if (covers(entries, at, entry)) return log;
  // Runs are joined from their beginning on, so one that is longer covers the others whole.
  let behind = at;
  while (behind < entries.length && entries[behind]!.seq <= entry.seq) behind += 1;
  const shared = entries.toSpliced(at, behind - at, entry);
  return { shared, length: shared.length };
}

/** Most entries come last, and must not cost the more the longer the turn is. */
function append(log: Log, entry: Journalled): Log {
  const shared = log.shared.length === log.length ? log.shared : log.shared.slice(0, log.length);
  shared.push(entry);
  return { shared, length: shared.length };
}

/** Whether the entries from some place on leave nothing for this one to say. */
function covers(entries: readonly Journalled[], from: number, entry: Journalled): boolean {
  let missing = sinceOf(entry);
  for (let at = from; at < entries.length && sinceOf(entries[at]!) <= missing; at += 1) missing = entries[at]!.seq + 1;
  return missing > entry.seq;
}
