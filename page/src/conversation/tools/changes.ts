/** Differences between two texts, as lines. */

export interface Line {
  kind: "same" | "added" | "removed" | "place" | "note";
  text: string;
  /** Its number before and after; null where it was not there. */
  before: number | null;
  after: number | null;
}

const PLACE = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Return the lines of a unified diff, without the names of the files. */
export function unified(diff: string): Line[] {
  const found: Line[] = [];
  let [before, after] = [0, 0];
  for (const line of diff.split("\n")) {
    const place = PLACE.exec(line);
    if (place) {
      [before, after] = [Number(place[1]), Number(place[2])];
      found.push({ kind: "place", text: line, before: null, after: null });
    } else if (found.length === 0) {
      // The names of the files stand above the first place.
    } else if (line.startsWith("+")) found.push({ kind: "added", text: line.slice(1), before: null, after: after++ });
    else if (line.startsWith("-")) found.push({ kind: "removed", text: line.slice(1), before: before++, after: null });
    else if (line.startsWith(" ")) found.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
    else if (line) found.push({ kind: "note", text: line, before: null, after: null });
  }
  return found;
}

/** Return what takes the place of what, where nobody has said at which line. */
export function replacement(old: string, fresh: string): Line[] {
  const lines = (text: string) => (text ? text.replace(/\n$/, "").split("\n") : []);
  const [gone, come] = [lines(old), lines(fresh)];
  const head = shared(gone, come);
  const tail = shared(gone.slice(head).reverse(), come.slice(head).reverse());
  const line = (kind: Line["kind"]) => (text: string) => ({ kind, text, before: null, after: null });
  return [
    ...gone.slice(0, head).map(line("same")),
    ...gone.slice(head, gone.length - tail).map(line("removed")),
    ...come.slice(head, come.length - tail).map(line("added")),
    ...gone.slice(gone.length - tail).map(line("same")),
  ];
}

/** Return how many lines two texts begin with in common. */
function shared(one: readonly string[], other: readonly string[]): number {
  const end = one.findIndex((line, index) => line !== other[index]);
  return end < 0 ? Math.min(one.length, other.length) : end;
}

/** Return how many lines came, and how many went. */
export function tally(lines: readonly Line[]): { added: number; removed: number } {
  const of = (kind: Line["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: of("added"), removed: of("removed") };
}
