/** The keys of the message field. */

import type { Turn } from "../journal/view.ts";
import { activeTurn } from "../turns/status.ts";
import { attempt } from "../ui/toast.tsx";
import type { CommandMenu } from "./commands.tsx";
import { isTouchScreen } from "./composer.tsx";
import type { Draft } from "./drafts.ts";
import type { SendMode } from "./send_modes.ts";
import { earlierMessages, stopActive } from "./sending.ts";

export type Intent =
  | "send"
  | "steer"
  | "choose"
  | "complete"
  | "next"
  | "previous"
  | "close"
  | "older"
  | "newer"
  | "stop";

interface Circumstances {
  /** The menu of commands is open. */
  listed: boolean;
  /** The only keyboard is on the screen, where Enter is the only key for a new line. */
  touched: boolean;
}

type Pressed = Pick<KeyboardEvent, "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey" | "isComposing" | "keyCode">;

const IN_LIST: Readonly<Record<string, Intent>> = {
  ArrowDown: "next",
  ArrowUp: "previous",
  Enter: "choose",
  Tab: "complete",
  Escape: "close",
};
/** The key code while an input method composes a word, for browsers that do not set `isComposing`. */
const COMPOSING = 229;

export function intentOf(pressed: Pressed, { listed, touched }: Circumstances): Intent | null {
  if (pressed.isComposing || pressed.keyCode === COMPOSING || pressed.altKey || pressed.shiftKey) return null;
  if (pressed.ctrlKey || pressed.metaKey) return pressed.key === "Enter" ? "steer" : null;
  if (listed) return IN_LIST[pressed.key] ?? null;
  if (pressed.key === "Enter") return touched ? null : "send";
  if (pressed.key === "Escape") return "stop";
  return pressed.key === "ArrowUp" ? "older" : pressed.key === "ArrowDown" ? "newer" : null;
}

/** Return the text of the next older or newer message; null if the key should move the cursor instead. */
export function recalledText(earlier: readonly string[], text: string, direction: "older" | "newer"): string | null {
  const at = text ? earlier.indexOf(text) : -1;
  if (text && at < 0) return null;
  if (direction === "older") return earlier[at + 1] ?? null;
  return at < 0 ? null : (earlier[at - 1] ?? "");
}

interface KeyContext {
  draft: Draft;
  turns: readonly Turn[];
  modes: readonly SendMode[];
  menu: CommandMenu;
  send: (mode?: SendMode) => void;
}

/** Return the key handler of the field. */
export function keysFor(context: KeyContext): (event: KeyboardEvent) => void {
  return (event) => {
    const intent = intentOf(event, { listed: context.menu.commands.length > 0, touched: isTouchScreen() });
    if (intent && act(intent, context, event.currentTarget as HTMLTextAreaElement)) event.preventDefault();
  };
}

/** Act on a key; false if the browser should handle it. */
function act(intent: Intent, { draft, turns, modes, menu, send }: KeyContext, field: HTMLTextAreaElement): boolean {
  switch (intent) {
    case "send":
      send();
      return true;
    case "steer":
      send(modes.find((each) => each.name === "steer"));
      return true;
    case "older":
    case "newer":
      return recallInto(intent, draft, turns, field);
    case "stop":
      return stopIfRunning(draft, turns);
    default:
      menu.press(intent, send);
      return true;
  }
}

function recallInto(
  direction: "older" | "newer",
  draft: Draft,
  turns: readonly Turn[],
  field: HTMLTextAreaElement,
): boolean {
  const edge = direction === "older" ? field.selectionStart === 0 : field.selectionStart === field.value.length;
  // In a text of several lines the arrow keys move the cursor until it reaches the edge.
  if (field.value.includes("\n") && !edge) return false;
  const text = recalledText(earlierMessages(turns), field.value, direction);
  if (text !== null) draft.text.value = text;
  return text !== null;
}

/** Stop the running turn, unless it waits for the person or the person is writing. */
function stopIfRunning(draft: Draft, turns: readonly Turn[]): boolean {
  if (draft.text.value || activeTurn(turns)?.state !== "running") return false;
  attempt(() => stopActive(turns));
  return true;
}
