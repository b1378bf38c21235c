/** Sends a draft through the outbox, so that it is stored before the field is cleared. */

import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { tabPocket } from "../browser.ts";
import { newKey } from "../bytes.ts";
import type { MessageItem, Turn } from "../journal/view.ts";
import type { Draft, Opening, Outgoing } from "../outbox/message.ts";
import { discard, outgoing, send } from "../outbox/outbox.ts";
import { go, to } from "../router.ts";
import { answer, stop } from "../turns/actions.ts";
import { atWork, inLine, openQuestion } from "../turns/status.ts";
import { attempt, tell, tellProblem } from "../ui/toast.tsx";
import type { Busy } from "../wire.ts";
import { commandIn } from "./commands.tsx";
import { type Attachment, clear, fill, moveInto, type PictureAttached, type Writing } from "./drafts.ts";
import { busyBy, type Way } from "./send_modes.ts";

export interface Destination {
  sessionId: string | null;
  previous: string | null;
}

/** Whether there is something to send, and all of it is there. */
export function isReady(writing: Writing): boolean {
  const attachments = writing.attachments.value;
  return Boolean(writing.text.value.trim() || attachments.length) && attachments.every(isThere);
}

/** Return why something that was written cannot be sent yet. */
export function obstacle(writing: Writing): string {
  const missing = writing.attachments.value.filter((each) => !isThere(each));
  if (!missing.length) return "";
  const failed = missing.some((each) => each.kind === "file" && each.problem);
  return failed ? "Remove what could not be attached, or send it again" : "Waiting for the attachments";
}

const isThere = (each: Attachment) => each.kind === "picture" || each.path !== null;

/** Send what was written in one of the ways there are; nothing, as long as it is not all there. */
export async function sendBy(way: Way, writing: Writing, destination: Destination, turns: readonly Turn[]) {
  if (!isReady(writing)) return;
  const turn = atWork(turns);
  const question = openQuestion(turn);
  if (way.name === "answer" && turn && question && !commandIn(writing.text.value)) {
    return answerWritten(writing, destination.sessionId, turn.id, question.questionId);
  }
  const opens = await sendWritten(writing, destination, busyBy(way));
  if (opens) awaitOpening(opens);
}

/** Begin a conversation with a text that was not written in the field, where something else may stand. */
export async function sendText(text: string, previous: string | null): Promise<void> {
  const opening = openingFor(outgoing.value, previous);
  await send({ sessionId: null, opening, text, images: [], busy: null });
  awaitOpening(opening.key);
}

/** Send what was written, and have an empty field.  Returns the key of the session that it opens, if it does. */
async function sendWritten(writing: Writing, { sessionId, previous }: Destination, busy: Busy | null) {
  const [text, attachments] = [writing.text.value, writing.attachments.value];
  const command = commandIn(text);
  if (command === "new" && sessionId) return leave(writing, sessionId);
  if (command && !sessionId) return explain(command);
  const opening = sessionId ? null : openingFor(outgoing.value, previous);
  clear(writing);
  dismissReplies(sessionId);
  try {
    await send({ ...carried(text, attachments), sessionId, opening, busy });
    return opening?.key ?? null;
  } catch (error) {
    // What could not be kept is not lost: it is where it was.
    fill(sessionId, text, attachments);
    tellProblem(error);
    return null;
  }
}

/** Answer the question that a turn waits with by what was written. */
async function answerWritten(writing: Writing, sessionId: string | null, turnId: string, questionId: string) {
  const [text, attachments] = [writing.text.value, writing.attachments.value];
  const message = carried(text, attachments);
  if (message.images.length) {
    tell("An answer has no pictures: remove them, or choose to queue it as a message.", { bad: true });
    return;
  }
  clear(writing);
  try {
    await answer(turnId, questionId, message.text);
  } catch (error) {
    fill(sessionId, text, attachments);
    tellProblem(error);
  }
}

/** Stop what a session is at.  What waits behind it goes on, unless that is not wanted either. */
export async function stopAtWork(turns: readonly Turn[]): Promise<void> {
  const [turn, waiting] = [atWork(turns), inLine(turns)];
  if (!turn) return;
  await stop(turn);
  if (!waiting.length) return;
  const run = () => void attempt(() => Promise.all(waiting.map(stop)));
  const text = waiting.length === 1 ? "The message in line is" : `The ${waiting.length} messages in line are`;
  tell(`Stopped. ${text} answered now.`, { action: { label: "Stop all", run } });
}

function leave(writing: Writing, sessionId: string): null {
  clear(writing);
  go(to.new(sessionId));
  return null;
}

function explain(command: string): null {
  tell(`/${command} is about a conversation: send a message first, which begins one.`);
  return null;
}

/** Whoever goes on has read what the commands before were answered with. */
function dismissReplies(sessionId: string | null): void {
  for (const each of outgoing.value) {
    if (each.sessionId === sessionId && each.reply !== null) discard(each.key);
  }
}

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

/** Return how a session is to be opened; messages that wait for the same one to be opened share it. */
export function openingFor(waiting: readonly Outgoing[], previous: string | null): Opening {
  const pending = waiting.find((each) => isUnopened(each) && each.opening?.previous_session_id === previous);
  return pending?.opening ?? { key: `web-${newKey()}`, previous_session_id: previous };
}

const isUnopened = (each: Outgoing) => each.sessionId === null && each.state !== "refused";

/** Kept for this tab alone, across a reload: what is begun in one is nothing to another. */
const AWAITED = "holdfast.awaited";

export function awaitOpening(key: string): void {
  tabPocket.set(AWAITED, key);
  arrive();
}

/** Go where what was begun here has been opened.  Whoever looks elsewhere meanwhile is left there. */
export function useArrival(begins: boolean): void {
  useSignalEffect(() => {
    if (outgoing.value.length && begins) arrive();
  });
  useEffect(() => (begins ? () => tabPocket.remove(AWAITED) : undefined), [begins]);
}

function arrive(): void {
  const awaited = tabPocket.get(AWAITED);
  const opened = outgoing.peek().find((each) => each.opening?.key === awaited && each.sessionId !== null);
  if (!opened?.sessionId) return;
  moveInto(opened.sessionId);
  go(to.session(opened.sessionId));
}
