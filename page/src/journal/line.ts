/** One connection, which is given up when it is silent for too long or there is reason not to trust it. */

/** So long a gateway may take to answer at all. */
const ANSWER_MS = 10_000;
/** It gives a sign of life every 15 seconds: after this long without any, nobody is there. */
const DEAD_MS = 40_000;
const LOOK_MS = 2_000;

export class Line {
  readonly #cut = new AbortController();
  readonly #watch: ReturnType<typeof setInterval>;
  #heardAt = Date.now();
  #silenceMs = ANSWER_MS;

  constructor(stopped: AbortSignal) {
    // By the clock on the wall, because timers stand still while a machine sleeps; somebody may set that back.
    this.#watch = setInterval(() => Math.abs(Date.now() - this.#heardAt) > this.#silenceMs && this.cut(), LOOK_MS);
    // A network that is said to be gone may be another one by now; to ask again costs nothing.
    addEventListener("offline", this.cut);
    stopped.addEventListener("abort", this.cut, { signal: this.#cut.signal });
  }

  /** Aborts with the connection. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  heard(): void {
    this.#heardAt = Date.now();
    this.#silenceMs = DEAD_MS;
  }

  readonly cut = (): void => {
    clearInterval(this.#watch);
    removeEventListener("offline", this.cut);
    this.#cut.abort();
  };
}
