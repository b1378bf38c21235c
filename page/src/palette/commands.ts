/** The commands and sessions that the palette offers. */

import { PAGES } from "../control/pages.ts";
import { isOpen, setOpen } from "../frame/drawer.ts";
import { ownItems } from "../frame/user_menu.ts";
import { CONTROL_PAGES, go, to } from "../router.ts";
import { itemsFor } from "../sessions/actions.tsx";
import { deleting } from "../sessions/deletion.ts";
import { channelOf } from "../sessions/labels.tsx";
import { searchSessions, words } from "../sessions/search.tsx";
import { current, currentSession, sessions } from "../sessions/store.ts";
import { stop } from "../turns/actions.ts";
import { atWork } from "../turns/status.ts";
import type { IconName } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";
import { match } from "./fuzzy.ts";

export interface Command {
  key: string;
  label: string;
  icon: IconName;
  /** What it belongs to, shown beside it and found as well. */
  group: "Go to" | "Do" | "This session" | "Session";
  keys?: string;
  run: () => void;
}

export interface Offer {
  command: Command;
  at: readonly number[];
}

const OFFERED_MAX = 40;
const SESSIONS_AT_FIRST = 6;

/** Return what fits to the letters, the closest first; without any, what is used most. */
export function offers(letters: string): Offer[] {
  const wanted = letters.trim();
  const all = [
    ...ofSession(),
    ...general(),
    ...rooms(),
    ...others(wanted ? Number.POSITIVE_INFINITY : SESSIONS_AT_FIRST),
  ];
  if (!wanted) return all.map((command) => ({ command, at: [] }));
  const found = all.flatMap((command) => {
    const matched = match(wanted, command.label);
    return matched ? [{ command, ...matched }] : [];
  });
  const sorted = found.sort((a, b) => b.score - a.score).slice(0, OFFERED_MAX);
  return [...sorted, { command: searchFor(wanted), at: [] }];
}

function general(): Command[] {
  const sidebar = isOpen.value ? "Hide the sidebar" : "Show the sidebar";
  return [
    doing("New chat", "plus", () => go(to.new()), "mod+shift+o"),
    doing("Search in all sessions", "search", searchSessions, "/"),
    doing(sidebar, "sidebar", () => setOpen(!isOpen.value), "mod+b"),
    ...ownItems().map(({ label, icon, onSelect }) => doing(label, icon, onSelect)),
  ];
}

function doing(label: string, icon: IconName, run: () => void, keys?: string): Command {
  return { key: label, label, icon, group: "Do", run, ...(keys ? { keys } : {}) };
}

function ofSession(): Command[] {
  const session = currentSession.value;
  if (!session) return [];
  const running = atWork(current.value?.turns.value ?? []);
  const items = itemsFor(session, "header");
  if (running) items.unshift({ label: "Stop", icon: "stop", onSelect: () => attempt(() => stop(running)) });
  return items.map(({ label, icon, onSelect }) => ({ ...doing(label, icon, onSelect), group: "This session" }));
}

function rooms(): Command[] {
  return CONTROL_PAGES.flatMap((page) => {
    const plan = PAGES[page];
    if (!plan) return [];
    return [{ key: page, label: plan.title, icon: plan.icon, group: "Go to", run: () => go(to.control(page)) }];
  });
}

function others(max: number): Command[] {
  const rest = sessions.value.filter((each) => each.id !== currentSession.value?.id && !deleting.value.has(each.id));
  return rest.slice(0, max).map((each) => ({
    key: each.id,
    label: each.label,
    icon: channelOf(each.channel).icon,
    group: "Session",
    run: () => go(to.session(each.id)),
  }));
}

function searchFor(wanted: string): Command {
  const run = () => {
    words.value = wanted;
    searchSessions();
  };
  return { key: "search-for", label: `Search messages for “${wanted}”`, icon: "search", group: "Do", run };
}
