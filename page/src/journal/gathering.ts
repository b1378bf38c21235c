/** Things that come one by one, given on together once a frame: nobody sees more, and everything is drawn once. */

/** A hidden page draws no frames. */
const HIDDEN_MS = 200;

export class Gathering<T> {
  #gathered: T[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly give: (gathered: readonly T[]) => void) {}

  add(each: T): void {
    this.#gathered.push(each);
    if (this.#gathered.length > 1) return;
    this.#frame = requestAnimationFrame(this.flush);
    this.#timer = setTimeout(this.flush, HIDDEN_MS);
  }

  /** Give on what is there now. */
  readonly flush = (): void => {
    const gathered = this.#gathered;
    this.drop();
    if (gathered.length) this.give(gathered);
  };

  drop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#gathered = [];
  }
}
