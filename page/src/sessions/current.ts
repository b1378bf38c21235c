/** The conversation that is open on the page, for what acts on it from elsewhere. */

import { computed, signal } from "@preact/signals";
import { sessionOf } from "../activity.ts";
import type { Conversation } from "../journal/conversation.ts";
import { place } from "../router.ts";
import type { SessionView } from "../wire.ts";

export const current = signal<Conversation | null>(null);

/** The open session, as it was last heard of. */
export const currentSession = computed<SessionView | null>(() => {
  const here = place.value;
  if (here.name !== "session") return null;
  const read = current.value?.id === here.id ? current.value.session.value : null;
  return read ?? sessionOf(here.id) ?? null;
});
