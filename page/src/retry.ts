/** Retries: exponential backoff that ends early when the network, the tab or the gateway is back. */

const SOONEST_MS = 500;
const LATEST_MS = 10_000;
/** Not signed in, too slow, too early, too often. */
const PASSING: ReadonlySet<number> = new Set([401, 408, 425, 429]);

const sleepers = new Set<() => void>();

/** Whether the same request may be answered otherwise the next time. */
export const mayPass = (status: number) => PASSING.has(status) || status >= 500;

/** Return how long to wait after so many tries in vain: never as long as everybody else. */
export function patience(tries: number, chance = Math.random()): number {
  return Math.min(LATEST_MS, SOONEST_MS * 2 ** tries) * (0.5 + chance / 2);
}

/** Wait for a while, or until there is hope: the network, the tab, the person or the gateway is back. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      sleepers.delete(done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    sleepers.add(done);
  });
}

/** Let everything that waits try at once. */
export function wake(): void {
  for (const done of [...sleepers]) done();
}
