import { to } from "../../router.ts";
import { titleOf } from "./titles.ts";

/** A link to the conversation, and the turn in it, that something belongs to. */
export function Origin({ sessionId, turnId = null }: { sessionId: string; turnId?: string | null }) {
  const title = titleOf(sessionId);
  if (title === null) return <span class="faint">a conversation that is deleted</span>;
  return (
    <a class="origin" href={to.session(sessionId, turnId)}>
      {title ?? "Conversation"}
    </a>
  );
}
