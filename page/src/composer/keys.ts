/** What a key means in the field; null where it only writes. */

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
