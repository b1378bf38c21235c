/** A map that is never changed, and whose next version costs little however large it is: they share most of it. */

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
