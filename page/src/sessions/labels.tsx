/** A session's status and its channel, in words and icons. */

import { Icon, type IconName } from "../ui/icon.tsx";
import type { Tone } from "../ui/parts.tsx";
import type { SessionView, SourceView } from "../wire.ts";

/** Return the status of a session in a few words; empty when it is idle. */
export function statusText(session: SessionView): string {
  if (session.activity === "waiting") return "Waiting for you";
  if (session.activity === "running") return "Running";
  if (session.activity === "retrying") return "Waiting for the model";
  if (session.activity === "queued") return "Queued";
  if (session.resume_pending) return "Interrupted; continues with your next message";
  if (session.state === "ended") return "Ended";
  return session.state === "suspended" ? "Suspended" : "";
}

export const statusTone = ({ activity }: SessionView): Tone => (activity ? TONES[activity] : "plain");

const TONES: Record<NonNullable<SessionView["activity"]>, Tone> = {
  running: "busy",
  waiting: "note",
  retrying: "note",
  queued: "plain",
};

/** The status as an icon, with its text for screen readers. */
export function StatusMark({ session, unread }: { session: SessionView; unread: boolean }) {
  const status = statusText(session);
  const text = unread && session.activity !== "waiting" ? "New answer" : status;
  if (!text || (status === "Ended" && !unread)) return null;
  return (
    <span class="state-mark" title={text}>
      {markOf(session, unread)}
      <span class="unseen">{text}</span>
    </span>
  );
}

function markOf(session: SessionView, unread: boolean) {
  if (session.activity === "waiting") return <Icon name="question" size={16} />;
  if (session.activity === "running") return <span class="dot running" />;
  if (session.activity === "retrying") return <Icon name="warning" size={14} />;
  if (session.activity === "queued") return <Icon name="clock" size={14} />;
  if (unread) return <span class="dot unread" />;
  return <Icon name={session.resume_pending ? "retry" : "pause"} size={14} />;
}

interface Channel {
  name: string;
  icon: IconName;
}

const CHANNELS: Record<string, Channel> = {
  web: { name: "This page", icon: "chat" },
  terminal: { name: "Terminal", icon: "terminal" },
  api: { name: "API", icon: "link" },
  responses: { name: "Responses API", icon: "link" },
  webhook: { name: "Webhook", icon: "webhook" },
  cron: { name: "Schedule", icon: "clock" },
  delegate: { name: "Delegated", icon: "split" },
  telegram: { name: "Telegram", icon: "plane" },
  slack: { name: "Slack", icon: "chat" },
  discord: { name: "Discord", icon: "chat" },
  whatsapp: { name: "WhatsApp", icon: "chat" },
  email: { name: "Email", icon: "file" },
};

/** The channel of sessions that are begun on this page. */
export const WEB_CHANNEL = "web";

export function channelOf(name: string): Channel {
  return CHANNELS[name] ?? { name: name && name[0]!.toUpperCase() + name.slice(1), icon: "globe" };
}

/** Return the channel of a session as people know it: a group of a chat platform is told from a private chat. */
export function originOf({ channel, source }: Pick<SessionView, "channel" | "source">): Channel {
  const { name, icon } = channelOf(channel);
  if (source.chat_type === "group") return { name: `${name} group`, icon: "people" };
  // An account may have any name, and a private chat is a chat on every platform.
  return { name, icon: source.chat_type === "private" && !(channel in CHANNELS) ? "chat" : icon };
}

/** Return the chat of a session in a list, unless the session is called by it. */
export function chatOf({ source, label }: Pick<SessionView, "source" | "label">): string {
  const isChat = source.chat_type === "group" || source.chat_type === "private";
  const name = source.chat_name ?? source.user_name ?? "";
  return isChat && name !== label ? name : "";
}

const NAMES: readonly (readonly [keyof SourceView, string])[] = [
  ["chat_name", "Chat"],
  ["chat_id", "Chat id"],
  ["chat_type", "Type"],
  ["thread_id", "Thread"],
  ["user_name", "User"],
  ["user_id", "User id"],
];

/** Return one line for each thing that the channel told. */
export function sourceLines(source: SourceView): readonly string[] {
  return NAMES.flatMap(([field, name]) => (source[field] ? [`${name}: ${source[field]}`] : []));
}
