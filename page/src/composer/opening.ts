/** How a session is opened by its first message. */

import type { Outgoing } from "../outbox/outbox.ts";

export type Opening = NonNullable<Outgoing["opening"]>;

/** Return how a session is to be opened; messages that wait for the same one to be opened share it. */
export function openingFor(waiting: readonly Outgoing[], previous: string | null): Opening {
  const pending = waiting.find((each) => isUnopened(each) && each.opening?.previous_session_id === previous);
  return pending?.opening ?? { key: newKey(), previous_session_id: previous };
}

const isUnopened = (each: Outgoing) => each.sessionId === null && each.state !== "refused";

/** Only pages that came by TLS or from this machine are given random ids ready-made. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}
