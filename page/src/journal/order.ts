/** The order in which the entries of a turn are read: what arrived late goes back to where it was written. */

import type { EntryKind } from "../wire.ts";
import { given, isClosing, type Journalled } from "./entry.ts";
import type { Recovery } from "./notes.ts";
import { countWhile } from "./sorted.ts";

/** Which attempts of a turn are over: what their worker still says is late. */
export type Closed = Set<number>;

/** Whether an entry arrived after the end of its attempt. */
export const isLate = (closed: Closed, entry: Journalled) =>
  !isClosing(entry) && entry.nth !== null && closed.has(entry.attempt);

/** Return the entries of a turn as they are read. */
export function ordered(entries: readonly Journalled[]): readonly Journalled[] {
  const closed: Closed = new Set();
  const placed: Journalled[] = [];
  const late: Journalled[] = [];
  for (const entry of entries) {
    if (isClosing(entry)) closed.add(entry.attempt);
    (isLate(closed, entry) ? late : placed).push(entry);
  }
  return late.length ? putBack(placed, late) : placed;
}

/** Whether one entry of a worker was written before another. */
function isBefore(one: Journalled, other: Journalled): boolean {
  return one.attempt === other.attempt ? one.nth! < other.nth! : one.attempt < other.attempt;
}

/** Return the entries with each late one below the last that its worker had written before it. */
function putBack(placed: readonly Journalled[], late: readonly Journalled[]): readonly Journalled[] {
  const written = placed.flatMap((entry, index) => (entry.nth === null ? [] : [{ entry, index }]));
  const below = new Map<number, Journalled[]>();
  for (const entry of late.toSorted((one, other) => one.attempt - other.attempt || one.nth! - other.nth!)) {
    const before = countWhile(written, (each) => isBefore(each.entry, entry));
    // With no earlier entry of its own the place is right below the acceptance, which opens every turn.
    const place = before ? written[before - 1]!.index : 0;
    const there = below.get(place);
    if (there) there.push(entry);
    else below.set(place, [entry]);
  }
  return placed.flatMap((entry, index) => [entry, ...(below.get(index) ?? [])]);
}

/** What an agent brings forth while it works: what is looked for after its worker is lost. */
const OUTPUT: ReadonlySet<EntryKind> = new Set(["text", "reasoning", "tool.started", "tool.finished"]);

/** Return how much was found of each attempt that was interrupted. */
export function recoveries(entries: readonly Journalled[]): ReadonlyMap<number, Recovery> {
  const attempts = (kinds: ReadonlySet<EntryKind>) =>
    new Set(entries.filter((each) => kinds.has(each.kind)).map((each) => each.attempt));
  const cut = entries.filter((each) => each.kind === "turn.interrupted");
  if (cut.length === 0) return new Map();
  const resolved = attempts(new Set(["turn.recovered"]));
  const shown = attempts(OUTPUT);
  return new Map(
    cut.map((entry) => {
      const pending = !resolved.has(entry.attempt) && given(entry, "recovery") === "pending";
      return [entry.attempt, pending ? "pending" : shown.has(entry.attempt) ? "output" : "nothing"];
    }),
  );
}
