/** What everything inside a conversation can reach. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";

export const ConversationContext = createContext<Conversation | null>(null);

/** Return the conversation that a component is in. */
export function useTalk(): Conversation {
  const conversation = useContext(ConversationContext);
  if (!conversation) throw new Error("This is not shown in a conversation.");
  return conversation;
}
