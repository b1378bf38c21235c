/** The page of one session: header, conversation, outbox and composer. */

import "./page.css";
import { useEffect, useMemo } from "preact/hooks";
import { Refused } from "../api.ts";
import { Composer } from "../composer/composer.tsx";
import { ConversationView } from "../conversation/view.tsx";
import { fullMoment } from "../format.ts";
import { type Conversation, openConversation } from "../journal/conversation.ts";
import { OutboxList } from "../outbox/list.tsx";
import { go, to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Badge, Empty, Problem } from "../ui/parts.tsx";
import type { SessionView, SourceView } from "../wire.ts";
import { beginRenaming, isRenaming, RenameField, SessionMenu } from "./actions.tsx";
import { originOf, sourceLines, statusText, statusTone, WEB_CHANNEL } from "./labels.tsx";
import { currentConversation, currentSession } from "./store.ts";
import { UsageMeter } from "./usage.tsx";

/** The page of one session. */
export function SessionPage({ id, turn }: { id: string; turn: string | null }) {
  const conversation = useOpenConversation(id);
  useEffect(() => {
    currentConversation.value = conversation;
    return () => {
      if (currentConversation.peek() === conversation) currentConversation.value = null;
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
      {session && <ClosedNote session={session} />}
      <Composer sessionId={id} previous={null} conversation={conversation} />
    </section>
  );
}

/** Open a session for as long as a component shows it. */
function useOpenConversation(id: string): Conversation {
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
    <Empty icon="chat" title="Session not found">
      <p>It was deleted, or belongs to another person.</p>
      <p>
        <a href={to.new()}>Start a new one</a>
      </p>
    </Empty>
  );
}

/** The header: title, source, status and actions. */
function SessionHeader({ conversation, session }: { conversation: Conversation; session: SessionView | null }) {
  return (
    <header class="session-header">
      <div class="session-heading">
        {session ? <Title session={session} /> : <span class="title-skeleton" />}
        <div class="session-facts">
          {session && session.channel !== WEB_CHANNEL && <ChannelBadge session={session} />}
          {session && <Source source={session.source} />}
          {session && <StateBadge session={session} />}
          {session?.chosen_model && <span class="chosen-model">{session.chosen_model}</span>}
          <ConnectionBadge link={conversation.link.value} />
        </div>
      </div>
      <UsageMeter conversation={conversation} />
      {session && <SessionMenu session={session} where="header" />}
    </header>
  );
}

function Title({ session }: { session: SessionView }) {
  if (isRenaming(session.id, "header")) return <RenameField session={session} />;
  return (
    <h1 class="session-title">
      <button type="button" title="Rename" onClick={() => beginRenaming(session.id, "header")}>
        {session.label}
      </button>
    </h1>
  );
}

function ChannelBadge({ session }: { session: SessionView }) {
  const channel = originOf(session);
  return (
    <Badge>
      <Icon name={channel.icon} size={13} />
      {channel.name}
    </Badge>
  );
}

/** The name of the chat in its channel, such as "webhook/alerts"; the rest of the source is in the tooltip. */
function Source({ source }: { source: SourceView }) {
  const name = source.chat_name ?? source.user_name;
  if (!name) return null;
  return (
    <span class="session-source" dir="auto" title={sourceLines(source).join("\n")}>
      {name}
    </span>
  );
}

function StateBadge({ session }: { session: SessionView }) {
  const text =
    session.activity || session.state !== "open" ? statusText(session) : session.resume_pending && "Interrupted";
  if (!text) return null;
  return <Badge tone={statusTone(session)}>{text}</Badge>;
}

const CONNECTION_TEXTS: Record<Conversation["link"]["value"], { text: string; icon: IconName; hint: string }> = {
  live: { text: "Live", icon: "check", hint: "Updates appear as they happen." },
  connecting: { text: "Connecting…", icon: "clock", hint: "What you see is saved." },
  away: { text: "Reconnecting…", icon: "offline", hint: "What you see is saved." },
};

/** The state of the connection, announced only when it changes. */
function ConnectionBadge({ link }: { link: Conversation["link"]["value"] }) {
  const { text, icon, hint } = CONNECTION_TEXTS[link];
  return (
    <span class={`link-state ${link}`} role="status" title={hint}>
      {link === "live" ? <span class="dot live" /> : <Icon name={icon} size={14} />}
      <span class="link-text">{text}</span>
      {link === "away" && <span class="link-hint">What you see is saved.</span>}
    </span>
  );
}

/** Says that a session has ended, and offers to continue in a new one. */
function ClosedNote({ session }: { session: SessionView }) {
  if (session.state === "open") return null;
  return (
    <div class="closed" role="note">
      <Icon name={session.state === "ended" ? "check" : "pause"} size={16} />
      <span>{closedText(session)}</span>
      <Button small icon="forward" onClick={() => go(to.new(session.id))}>
        Continue in a new session
      </Button>
    </div>
  );
}

function closedText(session: SessionView): string {
  if (session.state === "suspended") return "This session was suspended. Your next message starts a new one.";
  const when = session.ended_at ? ` on ${fullMoment(session.ended_at)}` : "";
  return `This session ended${when}. Its messages are kept.`;
}
