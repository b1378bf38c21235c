/** The connection to the gateway, and the gateway's last status. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { get } from "./api.ts";
import { retryNow } from "./retry.ts";
import { admissions } from "./sign_in/identity.ts";
import type { Status } from "./wire.ts";

/** The state of a stream; "away" means that the gateway does not answer, and is retried. */
export type ConnectionState = "connecting" | "live" | "away";

const STATUS_MS = 30_000;

const state = signal<ConnectionState>("connecting");
const offlineAt = signal<number | null>(null);
const lastStatus = signal<Status | null>(null);

/** The connection of the whole page. */
export const connection: ReadonlySignal<ConnectionState> = state;
/** False while the gateway does not answer. */
export const online = computed(() => state.value !== "away");
export const offlineSince: ReadonlySignal<number | null> = offlineAt;
/** The gateway's last status. */
export const status: ReadonlySignal<Status | null> = lastStatus;

/** Set the connection of the whole page. */
export function setConnection(now: ConnectionState): void {
  if (now === state.value) return;
  if (now === "away") offlineAt.value ??= Date.now();
  if (now === "live") offlineAt.value = null;
  state.value = now;
  if (now === "live") retryNow();
}

/** Fetch the gateway's status; the last one stays while the gateway does not answer. */
async function fetchStatus(): Promise<void> {
  lastStatus.value = await get<Status>("/api/status").catch(() => lastStatus.value);
}

/** Fetch the status when the connection is back, and every half minute. */
export function startConnection(): void {
  effect(() => {
    if (state.value === "live" && admissions.value) fetchStatus();
  });
  effect(() => {
    if (admissions.value) retryNow();
  });
  addEventListener("online", retryNow);
  addEventListener("pageshow", retryNow);
  document.addEventListener("visibilitychange", () => document.hidden || retryNow());
  setInterval(() => document.hidden || !online.value || fetchStatus(), STATUS_MS);
}
