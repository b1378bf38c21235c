/** How a session is opened by its first message. */

import { newKey } from "../outbox/key.ts";
import type { Opening, Outgoing } from "../outbox/outbox.ts";

/** Return how a session is to be opened; messages that wait for the same one to be opened share it. */
export function openingFor(waiting: readonly Outgoing[], previous: string | null): Opening {
  const pending = waiting.find((each) => isUnopened(each) && each.opening?.previous_session_id === previous);
  return pending?.opening ?? { key: `web-${newKey()}`, previous_session_id: previous };
}

const isUnopened = (each: Outgoing) => each.sessionId === null && each.state !== "refused";
