/** What set-up wizards share: the current step, and the one request that is awaited. */

import { type Signal, signal } from "@preact/signals";

export class Wizard<Step extends string> {
  readonly step: Signal<Step>;
  readonly problem = signal<unknown>(undefined);
  readonly busy = signal(false);
  /** The number of the latest request; older answers are dropped. */
  #latest = 0;

  constructor(first: Step) {
    this.step = signal(first);
  }

  move(to: Step): void {
    this.#latest += 1;
    this.busy.value = false;
    this.problem.value = undefined;
    this.step.value = to;
  }

  /** Send a request; null if it failed, or a later one was sent meanwhile. */
  protected async ask<T>(ask: () => Promise<T>): Promise<T | null> {
    const mine = ++this.#latest;
    this.busy.value = true;
    this.problem.value = undefined;
    let found: T | null = null;
    let problem: unknown;
    try {
      found = await ask();
    } catch (error) {
      problem = error;
    }
    if (mine !== this.#latest) return null;
    this.busy.value = false;
    this.problem.value = problem;
    return found;
  }
}
