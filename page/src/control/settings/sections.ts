/** The sections that settings stand in, as the file has them. */

import type { SettingView } from "../../wire.ts";

export interface Group {
  /** As in the file: [tools.terminal] */
  name: string;
  items: readonly SettingView[];
}

/** What people look for first comes first; what is not here stands behind. */
const ORDER = [
  "model",
  "agent",
  "memory",
  "tools",
  "budget",
  "sessions",
  "gateway",
  "server",
  "store",
  "channels",
  "providers",
  "mcp",
];
const TITLES: Record<string, string> = { mcp: "MCP" };

export const sectionOf = (setting: SettingView) => setting.key.split(".")[0]!;
export const nameOf = (setting: SettingView) => setting.key.split(".").at(-1)!;
const groupOf = (setting: SettingView) => setting.key.split(".").slice(0, -1).join(".");

export const titleOf = (section: string) => TITLES[section] ?? section[0]!.toUpperCase() + section.slice(1);

/** Return the sections that there are. */
export function sections(items: readonly SettingView[]): string[] {
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return [...new Set(items.map(sectionOf))].sort((a, b) => place(a) - place(b));
}

/** Return settings under the heads that they have in the file. */
export function grouped(items: readonly SettingView[]): Group[] {
  const names = [...new Set(items.map(groupOf))];
  return names.map((name) => ({ name, items: items.filter((each) => groupOf(each) === name) }));
}

/** Return the settings that have all the words of a search in their name or what they mean. */
export function found(items: readonly SettingView[], wanted: string): SettingView[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((each) => words.every((word) => `${each.key} ${each.doc}`.toLowerCase().includes(word)));
}
