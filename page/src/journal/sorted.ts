/** Looking something up in what is sorted. */

/** Return how many of the first items hold a condition that none holds after one that does not. */
export function countWhile<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}
