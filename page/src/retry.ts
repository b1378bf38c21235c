/** Retries: exponential backoff that ends early when the network, the tab or the gateway is back. */

const DELAY_MIN_MS = 500;
const DELAY_MAX_MS = 10_000;
/** Not signed in, too slow, too early, too often. */
const TRANSIENT: ReadonlySet<number> = new Set([401, 408, 425, 429]);

const waiting = new Set<() => void>();

/** Whether the same request may be answered otherwise the next time. */
export const isTransient = (status: number) => TRANSIENT.has(status) || status >= 500;

/** Return how long to wait after so many tries in vain: never as long as everybody else. */
export function backoffMs(tries: number, chance = Math.random()): number {
  return Math.min(DELAY_MAX_MS, DELAY_MIN_MS * 2 ** tries) * (0.5 + chance / 2);
}

/** Wait for a while, or until there is hope: the network, the tab, the person or the gateway is back. */
export function waitToRetry(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      waiting.delete(done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    waiting.add(done);
  });
}

/** Let everything that waits try at once. */
export function retryNow(): void {
  for (const done of [...waiting]) done();
}
