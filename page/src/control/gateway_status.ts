/** The gateway's status, polled while a control page is open and shared by all of its parts. */

import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { newLoader, whileVisible } from "../ui/requests.ts";
import type { Status } from "../wire.ts";

const POLL_MS = 2_500;
/** A status request that takes longer counts as failed. */
const TIMEOUT_MS = 8_000;

/** The last status, with the error of the last request if it failed; and the function that refreshes it. */
export const [gatewayStatus, refreshStatus] = newLoader(() => get<Status>("/api/status", { timeoutMs: TIMEOUT_MS }));

/** Poll the status while a component is mounted. */
export function useGatewayStatus(everyMs = POLL_MS): void {
  useEffect(() => whileVisible(refreshStatus, everyMs), [everyMs]);
}
