/** Whether the page has its gateway, and what to do as soon as it may have it again. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { get } from "./api.ts";
import { returned } from "./me.ts";
import type { Status } from "./wire.ts";

/** How a stream is: "away" is when nobody answered, and it is tried again and again. */
export type Link = "connecting" | "live" | "away";

const SOONEST_MS = 500;
const LATEST_MS = 10_000;
const STATUS_MS = 30_000;
/** Not signed in, too slow, too early, too often. */
const PASSING: ReadonlySet<number> = new Set([401, 408, 425, 429]);

const linked = signal<Link>("connecting");
const since = signal<number | null>(null);
const stands = signal<Status | null>(null);
const sleepers = new Set<() => void>();

/** The link of the whole page. */
export const link: ReadonlySignal<Link> = linked;
/** False while the gateway does not answer. */
export const online = computed(() => linked.value !== "away");
export const awaySince: ReadonlySignal<number | null> = since;
/** What the gateway last said of itself. */
export const status: ReadonlySignal<Status | null> = stands;

/** Say how the link of the whole page is. */
export function report(now: Link): void {
  if (now === linked.value) return;
  if (now === "away") since.value ??= Date.now();
  if (now === "live") since.value = null;
  linked.value = now;
  if (now === "live") wake();
}

/** Ask the gateway how it is; what it said last stays while it does not answer. */
export async function lookAtStatus(): Promise<void> {
  stands.value = await get<Status>("/api/status").catch(() => stands.value);
}

/** Begin to look at the gateway: when it is there again, and now and then. */
export function startConnection(): void {
  effect(() => {
    if (linked.value === "live" && returned.value) lookAtStatus();
  });
  effect(() => {
    if (returned.value) wake();
  });
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", () => document.hidden || wake());
  setInterval(() => document.hidden || !online.value || lookAtStatus(), STATUS_MS);
}

/** Whether the same request may be answered otherwise the next time. */
export const mayPass = (status: number) => PASSING.has(status) || status >= 500;

/** Return how long to wait after so many tries in vain: longer each time, and never as long as everybody else. */
export function patience(tries: number, chance = Math.random()): number {
  return Math.min(LATEST_MS, SOONEST_MS * 2 ** tries) * (0.5 + chance / 2);
}

/** Wait for a while, or until there is reason to hope: the network, the tab, the person or the gateway is back. */
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
