/** Where sessions come from, as people call it. */

import type { IconName } from "../ui/icon.tsx";

export interface Channel {
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

/** The channel of the sessions that are begun here. */
export const OWN = "web";

export function channelOf(name: string): Channel {
  return CHANNELS[name] ?? { name: name && name[0]!.toUpperCase() + name.slice(1), icon: "globe" };
}
