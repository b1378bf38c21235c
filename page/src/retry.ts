/** Retries: exponential backoff that ends early when the network, the tab or the gateway is back. */

const DELAY_MIN_MS = 500;
const DELAY_MAX_MS = 10_000;
/** Not signed in, timeout, too early, rate limited. */
const TRANSIENT: ReadonlySet<number> = new Set([401, 408, 425, 429]);

const waiting = new Set<() => void>();

/** Whether a retry of the same request may succeed. */
export const isTransient = (status: number) => TRANSIENT.has(status) || status >= 500;

/** Return the delay after this many failed tries, with jitter so that clients do not retry in step. */
export function backoffMs(tries: number, chance = Math.random()): number {
  return Math.min(DELAY_MAX_MS, DELAY_MIN_MS * 2 ** tries) * (0.5 + chance / 2);
}

/** Wait, but no longer than until the network, the tab, the sign-in or the gateway is back. */
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

/** End all waits. */
export function retryNow(): void {
  for (const done of [...waiting]) done();
}
