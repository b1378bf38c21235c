/** Which rows of a long list are drawn: those in sight, and some on either side.  For the others there is empty room. */

/** A part of the list: the rows from `from` up to `to`, with the room that the others would take. */
export interface Span {
  from: number;
  to: number;
  above: number;
  below: number;
}

/** Return where each row begins, and at last where the list ends. */
export function offsets(heights: Iterable<number>): number[] {
  const found = [0];
  let end = 0;
  for (const height of heights) {
    end += height;
    found.push(end);
  }
  return found;
}

/** Return the row that a point lies in; the first for what is above all, the last for what is below. */
export function rowAt(starts: readonly number[], point: number): number {
  let [low, high] = [0, Math.max(starts.length - 2, 0)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle]! <= point) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return what to draw when the list is seen from `top` on, and `sight` of it at once. */
export function spanAt(starts: readonly number[], top: number, sight: number, margin: number): Span {
  const count = starts.length - 1;
  if (count === 0) return { from: 0, to: 0, above: 0, below: 0 };
  const from = rowAt(starts, top - margin);
  const to = rowAt(starts, top + sight + margin) + 1;
  return { from, to, above: starts[from]!, below: starts[count]! - starts[to]! };
}
