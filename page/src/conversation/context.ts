/** What every component inside a conversation can reach: the conversation, and state that outlives its row. */

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";

export const ConversationContext = createContext<Conversation | null>(null);

/** Return the conversation that a component is in. */
export function useConversation(): Conversation {
  const conversation = useContext(ConversationContext);
  if (!conversation) throw new Error("This is not shown in a conversation.");
  return conversation;
}

/** The oldest state is dropped first. */
const STATES_MAX = 1_000;
const remembered = new Map<string, unknown>();

/** State that outlives its component.  The name identifies its owner, and is always used with the same type. */
export function useRemembered<T>(name: string, initial: T): [T, (value: T) => void] {
  const [, redraw] = useState(0);
  // The same name always has the same type.
  const value = remembered.has(name) ? (remembered.get(name) as T) : initial;
  const set = (next: T) => {
    remembered.delete(name);
    if (next !== initial) remembered.set(name, next);
    if (remembered.size > STATES_MAX) remembered.delete([...remembered.keys()][0]!);
    redraw((count) => count + 1);
  };
  return [value, set];
}
