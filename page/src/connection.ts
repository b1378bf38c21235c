/** Whether the page has its gateway. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { get } from "./api.ts";
import { wake } from "./retry.ts";
import { returned } from "./sign_in/identity.ts";
import type { Status } from "./wire.ts";

/** How a stream is: "away" is when nobody answered, and it is tried again and again. */
export type Link = "connecting" | "live" | "away";

const STATUS_MS = 30_000;

const linked = signal<Link>("connecting");
const since = signal<number | null>(null);
const stands = signal<Status | null>(null);

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
async function lookAtStatus(): Promise<void> {
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
  addEventListener("pageshow", wake);
  document.addEventListener("visibilitychange", () => document.hidden || wake());
  setInterval(() => document.hidden || !online.value || lookAtStatus(), STATUS_MS);
}
