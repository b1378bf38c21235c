/** Keyboard shortcuts, the help that lists them, and which overlay they open. */

import "./palette.css";
import { computed, signal } from "@preact/signals";
import { isOpen, setOpen } from "../frame/drawer.ts";
import { go, route, to } from "../router.ts";
import { grouped, listedSessions } from "../sessions/listing.ts";
import { focusSearch } from "../sessions/search.tsx";
import { access } from "../sign_in/identity.ts";
import { Dialog } from "../ui/dialog.tsx";
import { isPressed, isTyping, Keys } from "../ui/keys.tsx";

type Overlay = "palette" | "help";

const overlay = signal<Overlay | null>(null);

export const paletteShown = computed(() => overlay.value === "palette");
export const helpShown = computed(() => overlay.value === "help");

const show = (cover: Overlay) => () => {
  overlay.value = cover;
};
/** A dialog reports late that it was closed: the other one may be open by then, and stays. */
const hide = (cover: Overlay) => () => {
  if (overlay.value === cover) overlay.value = null;
};

export const showPalette = show("palette");
export const showHelp = show("help");
export const hidePalette = hide("palette");
const hideHelp = hide("help");

interface Shortcut {
  keys: string;
  label: string;
  run: () => void;
}

const SHORTCUTS: readonly Shortcut[] = [
  { keys: "mod+k", label: "Commands and sessions", run: showPalette },
  { keys: "mod+shift+o", label: "New chat", run: () => go(to.new()) },
  { keys: "/", label: "Search in all sessions", run: focusSearch },
  { keys: "mod+shift+f", label: "The same while typing", run: focusSearch },
  { keys: "alt+arrowup", label: "Previous session", run: () => switchSession(-1) },
  { keys: "alt+arrowdown", label: "Next session", run: () => switchSession(1) },
  { keys: "mod+b", label: "Show or hide the sidebar", run: () => setOpen(!isOpen.value) },
  { keys: "?", label: "These shortcuts", run: showHelp },
];

export function startShortcuts(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || access.value === "outside") return;
    const shortcut = SHORTCUTS.find(({ keys }) => isPressed(keys, event));
    if (!shortcut || (isPlain(shortcut.keys) && isTyping(event.target)) || isCovered()) return;
    event.preventDefault();
    shortcut.run();
  });
}

const isPlain = (keys: string) => !/mod|alt/.test(keys);

/** An open dialog has the keys for itself. */
const isCovered = () => document.querySelector("dialog[open]") !== null;

/** Go to the session above or below the open one in the list. */
function switchSession(by: number): void {
  const here = route.value;
  const listed = grouped(listedSessions.value).flatMap(({ sessions }) => sessions);
  const at = here.name === "session" ? listed.findIndex((each) => each.id === here.id) : -1;
  const next = at < 0 ? listed[0] : listed[at + by];
  if (next) go(to.session(next.id));
}

/** Keys that work in one part of the page. */
const FIELD_KEYS = [
  { keys: "enter", label: "Send the message" },
  { keys: "shift+enter", label: "New line in the message" },
  { keys: "mod+enter", label: "Send the message to the running turn" },
  { keys: "arrowup", label: "Previous message, in an empty field" },
  { keys: "f2", label: "Rename the focused session in the list" },
  { keys: "delete", label: "Delete the focused session (with undo)" },
  { keys: "escape", label: "Stop the answer, in an empty field; close a dialog" },
];

/** The list of all shortcuts. */
export function Help() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={hideHelp}>
      <dl class="help">
        {[...SHORTCUTS, ...FIELD_KEYS].map(({ keys, label }) => (
          <div key={keys}>
            <dt>{label}</dt>
            <dd>
              <Keys keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
