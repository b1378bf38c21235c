/** The text of a message, made of what was written and what goes along with it. */

import type { MessageItem, Turn } from "../journal/view.ts";
import type { Draft } from "../outbox/outbox.ts";
import type { Attachment, PictureAttached } from "./writing.ts";

/** Who pastes more than this may rather want to attach it. */
export const PASTE_LONG = 8_000;

/** Return a text and what goes along with it as a message has them. */
export function carried(text: string, attachments: readonly Attachment[]): Pick<Draft, "text" | "images"> {
  const pictures = attachments.filter((each): each is PictureAttached => each.kind === "picture");
  const paths = attachments.flatMap((each) => (each.kind === "file" && each.path ? [each.path] : []));
  const names = pictures.map((each) => each.name);
  const images = pictures.map(({ mediaType, data, name }) => ({ media_type: mediaType, data, name }));
  return { text: composed(text, paths, names), images };
}

/** Return the text that is sent.  Files are named in it, because the agent reads them by their names. */
function composed(text: string, files: readonly string[], pictures: readonly string[]): string {
  const named = files.map((each) => `Attached: ${each}`);
  // No message is empty, and one with pictures alone says at least what they are called.
  const said = text.trim() || (named.length ? "" : pictures.map((each) => `Attached: ${each}`).join("\n"));
  return [said, named.join("\n")].filter(Boolean).join("\n\n");
}

/** Return a text without what was pasted into it last. */
export function without(text: string, pasted: string): string {
  const at = text.lastIndexOf(pasted);
  return at < 0 ? text : text.slice(0, at) + text.slice(at + pasted.length);
}

/** Return what a person asked in a session, the newest first, each text once. */
export function asked(turns: readonly Turn[]): readonly string[] {
  const texts = turns.flatMap((turn) => turn.items.filter(isMessage).map((each) => each.text));
  return [...new Set(texts.reverse())].filter(Boolean);
}

const isMessage = (item: Turn["items"][number]): item is MessageItem => item.role === "user";
