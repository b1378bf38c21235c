/** The gateway's status, polled while a control page is open and shared by all of its parts. */

import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { newLoader, whileVisible } from "../ui/requests.ts";
import type { Status } from "../wire.ts";

const POLL_MS = 2_500;
/** One that does not answer a glance by then does not answer now. */
const TIMEOUT_MS = 8_000;

/** What is known, beside an error from before it; and what looks again. */
export const [gatewayStatus, refreshStatus] = newLoader(() => get<Status>("/api/status", { timeoutMs: TIMEOUT_MS }));

/** Keep looking while this is shown. */
export function useGatewayStatus(everyMs = POLL_MS): void {
  useEffect(() => whileVisible(refreshStatus, everyMs), [everyMs]);
}
