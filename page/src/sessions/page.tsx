import { useEffect, useMemo } from "preact/hooks";
import { Refused } from "../api.ts";
import { Composer } from "../composer/composer.tsx";
import { ConversationView } from "../conversation/view.tsx";
import { type Conversation, openConversation } from "../journal/conversation.ts";
import { OutboxList } from "../outbox/list.tsx";
import { to } from "../router.ts";
import { Empty, Problem } from "../ui/parts.tsx";
import { Closed } from "./closed.tsx";
import { current, currentSession } from "./current.ts";
import { SessionHeader } from "./header.tsx";
import "./page.css";

/** One session: what was said, what is on its way, and the field for what comes next. */
export function SessionPage({ id, turn }: { id: string; turn: string | null }) {
  const conversation = useConversation(id);
  useEffect(() => {
    current.value = conversation;
    return () => {
      if (current.peek() === conversation) current.value = null;
    };
  }, [conversation]);
  if (isMissing(conversation)) return <Missing />;
  const session = currentSession.value;
  return (
    <section class="session-page" aria-label={session?.label ?? "Session"}>
      <SessionHeader conversation={conversation} session={session} />
      {conversation.problem.value ? <Problem error={conversation.problem.value} /> : null}
      <ConversationView conversation={conversation} target={turn}>
        <OutboxList sessionId={id} sessionKey={session?.key ?? null} />
      </ConversationView>
      {session && <Closed session={session} />}
      <Composer sessionId={id} previous={null} conversation={conversation} />
    </section>
  );
}

/** Have a session open for as long as something shows it. */
function useConversation(id: string): Conversation {
  const conversation = useMemo(() => openConversation(id), [id]);
  useEffect(() => () => conversation.close(), [conversation]);
  return conversation;
}

function isMissing(conversation: Conversation): boolean {
  const problem = conversation.problem.value;
  return problem instanceof Refused && problem.status === 404;
}

function Missing() {
  return (
    <Empty icon="chat" title="This session is not here">
      <p>It was deleted, or belongs to somebody else.</p>
      <p>
        <a href={to.new()}>Begin a new one</a>
      </p>
    </Empty>
  );
}
