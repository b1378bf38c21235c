import type { Conversation } from "../journal/conversation.ts";
import { Meter } from "../meter/meter.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Badge } from "../ui/parts.tsx";
import type { SessionView, SourceView } from "../wire.ts";
import { channelOf, OWN } from "./channels.ts";
import { SessionMenu } from "./menu.tsx";
import { RenameField } from "./rename.tsx";
import { beginRenaming, isRenaming } from "./renaming.ts";
import { sourceLines } from "./source.ts";
import { stateOf, toneOf } from "./state.tsx";

/** Above a conversation: its name, where it comes from, how it stands, and what can be done with it. */
export function SessionHeader({ conversation, session }: { conversation: Conversation; session: SessionView | null }) {
  return (
    <header class="session-header">
      <div class="session-heading">
        {session ? <Title session={session} /> : <span class="title-skeleton" />}
        <div class="session-facts">
          {session && session.channel !== OWN && <ChannelBadge name={session.channel} />}
          {session && <Source source={session.source} />}
          {session && <StateBadge session={session} />}
          <LinkState link={conversation.link.value} />
        </div>
      </div>
      <Meter conversation={conversation} />
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

function ChannelBadge({ name }: { name: string }) {
  const channel = channelOf(name);
  return (
    <Badge>
      <Icon name={channel.icon} size={13} />
      {channel.name}
    </Badge>
  );
}

/** What the channel calls the chat: "webhook/alerts"; everything else that it said of it is behind a pointer. */
function Source({ source }: { source: SourceView }) {
  if (!source.chat_name) return null;
  return (
    <span class="session-source" title={sourceLines(source).join("\n")}>
      {source.chat_name}
    </span>
  );
}

function StateBadge({ session }: { session: SessionView }) {
  const text =
    session.activity || session.state !== "open" ? stateOf(session) : session.resume_pending && "Interrupted";
  if (!text) return null;
  return <Badge tone={toneOf(session)}>{text}</Badge>;
}

const LINKS: Record<Conversation["link"]["value"], { text: string; icon: IconName; hint: string }> = {
  live: { text: "Live", icon: "check", hint: "What happens is shown as it happens." },
  connecting: { text: "Connecting…", icon: "clock", hint: "What you see is saved." },
  away: { text: "Reconnecting…", icon: "offline", hint: "What you see is saved." },
};

/** Whether what is shown is what is, said aloud only when it changes. */
function LinkState({ link }: { link: Conversation["link"]["value"] }) {
  const { text, icon, hint } = LINKS[link];
  return (
    <span class={`link-state ${link}`} role="status" title={hint}>
      {link === "live" ? <span class="dot live" /> : <Icon name={icon} size={14} />}
      <span class="link-text">{text}</span>
      {link === "away" && <span class="link-hint">What you see is saved.</span>}
    </span>
  );
}
