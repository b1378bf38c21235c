/** The keys that work everywhere on the page. */

import { isOpen, setOpen } from "../frame/drawer.ts";
import { standing } from "../me.ts";
import { go, place, to } from "../router.ts";
import { grouped } from "../sessions/groups.ts";
import { shown } from "../sessions/listing.ts";
import { searchSessions } from "../sessions/search.tsx";
import { isPressed, isTyping } from "../ui/keys.ts";
import { showHelp, showPalette } from "./shown.ts";

interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: "mod+k", label: "Commands and sessions", run: showPalette },
  { keys: "mod+shift+o", label: "New chat", run: () => go(to.new()) },
  { keys: "/", label: "Search in all sessions", run: searchSessions },
  { keys: "mod+shift+f", label: "The same while you write", run: searchSessions },
  { keys: "alt+arrowup", label: "Previous session", run: () => switchSession(-1) },
  { keys: "alt+arrowdown", label: "Next session", run: () => switchSession(1) },
  { keys: "mod+b", label: "Show or hide the sidebar", run: () => setOpen(!isOpen.value) },
  { keys: "?", label: "These shortcuts", run: showHelp },
];

export function startShortcuts(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || standing.value === "outside") return;
    const shortcut = SHORTCUTS.find(({ keys }) => isPressed(keys, event));
    if (!shortcut || (isPlain(shortcut.keys) && isTyping(event.target)) || isCovered()) return;
    event.preventDefault();
    shortcut.run();
  });
}

const isPlain = (keys: string) => !/mod|alt/.test(keys);

/** A dialog has the keys for itself. */
const isCovered = () => document.querySelector("dialog[open]") !== null;

/** Go to the session above or below the open one, in the order of the list. */
function switchSession(by: number): void {
  const here = place.value;
  const listed = grouped(shown.value).flatMap(({ sessions }) => sessions);
  const at = here.name === "session" ? listed.findIndex((each) => each.id === here.id) : -1;
  const next = at < 0 ? listed[0] : listed[at + by];
  if (next) go(to.session(next.id));
}
