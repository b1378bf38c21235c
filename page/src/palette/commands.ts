/** The commands and sessions that the palette offers. */

import { PAGES } from "../control/pages.ts";
import { isOpen, setOpen } from "../frame/drawer.ts";
import { userMenuItems } from "../frame/user_menu.ts";
import { CONTROL_PAGES, go, to } from "../router.ts";
import { sessionMenuItems } from "../sessions/actions.tsx";
import { deleting } from "../sessions/deletion.ts";
import { originOf } from "../sessions/labels.tsx";
import { focusSearch, searchWords } from "../sessions/search.tsx";
import { currentConversation, currentSession, sessions } from "../sessions/store.ts";
import { stop } from "../turns/actions.ts";
import { activeTurn } from "../turns/status.ts";
import type { IconName } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";
import { match } from "./fuzzy.ts";

interface Command {
  key: string;
  label: string;
  icon: IconName;
  /** The group it belongs to, shown beside it and searched too. */
  group: "Go to" | "Do" | "This session" | "Session";
  keys?: string;
  run: () => void;
}

export interface PaletteEntry {
  command: Command;
  at: readonly number[];
}

const ENTRIES_MAX = 40;
const SESSIONS_AT_FIRST = 6;

/** Return the matches, best first; without letters, the most used entries. */
export function paletteEntries(letters: string): PaletteEntry[] {
  const searched = letters.trim();
  const all = [
    ...sessionCommands(),
    ...generalCommands(),
    ...controlPages(),
    ...otherSessions(searched ? Number.POSITIVE_INFINITY : SESSIONS_AT_FIRST),
  ];
  if (!searched) return all.map((command) => ({ command, at: [] }));
  const found = all.flatMap((command) => {
    const matched = match(searched, command.label);
    return matched ? [{ command, ...matched }] : [];
  });
  const sorted = found.sort((a, b) => b.score - a.score).slice(0, ENTRIES_MAX);
  return [...sorted, { command: searchFor(searched), at: [] }];
}

function generalCommands(): Command[] {
  const sidebar = isOpen.value ? "Hide the sidebar" : "Show the sidebar";
  return [
    action("New chat", "plus", () => go(to.new()), "mod+shift+o"),
    action("Search in all sessions", "search", focusSearch, "/"),
    action(sidebar, "sidebar", () => setOpen(!isOpen.value), "mod+b"),
    ...userMenuItems().map(({ label, icon, onSelect }) => action(label, icon, onSelect)),
  ];
}

function action(label: string, icon: IconName, run: () => void, keys?: string): Command {
  return { key: label, label, icon, group: "Do", run, ...(keys ? { keys } : {}) };
}

function sessionCommands(): Command[] {
  const session = currentSession.value;
  if (!session) return [];
  const running = activeTurn(currentConversation.value?.turns.value ?? []);
  const items = sessionMenuItems(session, "header");
  if (running) items.unshift({ label: "Stop", icon: "stop", onSelect: () => attempt(() => stop(running)) });
  return items.map(({ label, icon, onSelect }) => ({ ...action(label, icon, onSelect), group: "This session" }));
}

function controlPages(): Command[] {
  return CONTROL_PAGES.flatMap((page) => {
    const plan = PAGES[page];
    if (!plan) return [];
    return [{ key: page, label: plan.title, icon: plan.icon, group: "Go to", run: () => go(to.control(page)) }];
  });
}

function otherSessions(max: number): Command[] {
  const rest = sessions.value.filter((each) => each.id !== currentSession.value?.id && !deleting.value.has(each.id));
  return rest.slice(0, max).map((each) => ({
    key: each.id,
    label: each.label,
    icon: originOf(each).icon,
    group: "Session",
    run: () => go(to.session(each.id)),
  }));
}

function searchFor(searched: string): Command {
  const run = () => {
    searchWords.value = searched;
    focusSearch();
  };
  return { key: "search-for", label: `Search messages for “${searched}”`, icon: "search", group: "Do", run };
}
