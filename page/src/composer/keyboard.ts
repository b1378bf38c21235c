/** The keys of the message field. */

import type { Turn } from "../journal/view.ts";
import { atWork } from "../turns/status.ts";
import { attempt } from "../ui/toast.tsx";
import type { Offer } from "./commands.tsx";
import { isTouched } from "./composer.tsx";
import type { Writing } from "./drafts.ts";
import type { Way } from "./send_modes.ts";
import { asked, stopAtWork } from "./sending.ts";

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

export interface Circumstances {
  /** Commands are offered. */
  listed: boolean;
  /** There is no keyboard but the one on the screen, which has no other key for a new line. */
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
/** The key code of a key that a word is being put together with, where nothing else says so. */
const COMPOSING = 229;

export function intentOf(pressed: Pressed, { listed, touched }: Circumstances): Intent | null {
  if (pressed.isComposing || pressed.keyCode === COMPOSING || pressed.altKey || pressed.shiftKey) return null;
  if (pressed.ctrlKey || pressed.metaKey) return pressed.key === "Enter" ? "steer" : null;
  if (listed) return IN_LIST[pressed.key] ?? null;
  if (pressed.key === "Enter") return touched ? null : "send";
  if (pressed.key === "Escape") return "stop";
  return pressed.key === "ArrowUp" ? "older" : pressed.key === "ArrowDown" ? "newer" : null;
}

/** Return the text of an earlier message, or of a later one of them; null where the key is to move in the text. */
export function recalled(asked: readonly string[], text: string, way: "older" | "newer"): string | null {
  const at = text ? asked.indexOf(text) : -1;
  if (text && at < 0) return null;
  if (way === "older") return asked[at + 1] ?? null;
  return at < 0 ? null : (asked[at - 1] ?? "");
}

interface Keyed {
  writing: Writing;
  turns: readonly Turn[];
  ways: readonly Way[];
  offer: Offer;
  send: (way?: Way) => void;
}

/** Return what the field does with a key. */
export function keysFor(keyed: Keyed): (event: KeyboardEvent) => void {
  return (event) => {
    const intent = intentOf(event, { listed: keyed.offer.commands.length > 0, touched: isTouched() });
    if (intent && act(intent, keyed, event.currentTarget as HTMLTextAreaElement)) event.preventDefault();
  };
}

/** Do what a key means; false where it is to do what it does anyway. */
function act(intent: Intent, { writing, turns, ways, offer, send }: Keyed, field: HTMLTextAreaElement): boolean {
  switch (intent) {
    case "send":
      send();
      return true;
    case "steer":
      send(ways.find((each) => each.name === "steer"));
      return true;
    case "older":
    case "newer":
      return recall(intent, writing, turns, field);
    case "stop":
      return halt(writing, turns);
    default:
      offer.steer(intent, send);
      return true;
  }
}

function recall(way: "older" | "newer", writing: Writing, turns: readonly Turn[], field: HTMLTextAreaElement): boolean {
  const edge = way === "older" ? field.selectionStart === 0 : field.selectionStart === field.value.length;
  // In a text of several lines the arrows move, until they can go no further.
  if (field.value.includes("\n") && !edge) return false;
  const text = recalled(asked(turns), field.value, way);
  if (text !== null) writing.text.value = text;
  return text !== null;
}

/** Stop what runs; not what waits for its person, nor under what they are just writing. */
function halt(writing: Writing, turns: readonly Turn[]): boolean {
  if (writing.text.value || atWork(turns)?.state !== "running") return false;
  attempt(() => stopAtWork(turns));
  return true;
}
