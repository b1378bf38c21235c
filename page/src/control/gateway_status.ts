/** The gateway's status, polled while a control page is open and shared by all of its parts. */

import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { loading, whileVisible } from "../ui/requests.ts";
import type { Status } from "../wire.ts";

const LOOK_MS = 2_500;
/** One that does not answer a glance by then does not answer now. */
const PATIENCE_MS = 8_000;

/** What is known, beside an error from before it; and what looks again. */
export const [glance, look] = loading(() => get<Status>("/api/status", { patienceMs: PATIENCE_MS }));

/** Keep looking while this is shown. */
export function useGlance(everyMs = LOOK_MS): void {
  useEffect(() => whileVisible(look, everyMs), [everyMs]);
}
