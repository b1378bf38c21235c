/** The conversation that is open on the page, for what acts on it from elsewhere. */

import { computed, signal } from "@preact/signals";
import { sessions } from "../activity.ts";
import type { Conversation } from "../journal/conversation.ts";
import { place } from "../router.ts";
import type { SessionView } from "../wire.ts";

export const current = signal<Conversation | null>(null);

/** The open session, as new as it is known: from the list, which hears of changes first, or from the conversation. */
export const currentSession = computed<SessionView | null>(() => {
  const here = place.value;
  if (here.name !== "session") return null;
  const listed = sessions.value.find((each) => each.id === here.id);
  const own = current.value?.id === here.id ? current.value.session.value : null;
  return listed ?? own;
});
