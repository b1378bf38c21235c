/** Sends a draft through the outbox, so that it is stored before the field is cleared. */

import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { tabStore } from "../browser.ts";
import { newKey } from "../bytes.ts";
import type { MessageItem, Turn } from "../journal/view.ts";
import type { NewMessage, Opening, Outgoing } from "../outbox/message.ts";
import { discard, outgoing, send } from "../outbox/outbox.ts";
import { go, to } from "../router.ts";
import { answer, stop } from "../turns/actions.ts";
import { activeTurn, openQuestion, queuedTurns } from "../turns/status.ts";
import { attempt, showError, showToast } from "../ui/toast.tsx";
import type { Busy } from "../wire.ts";
import { commandIn } from "./commands.tsx";
import { type Attachment, clearDraft, type Draft, moveDraft, type PictureAttachment, prefill } from "./drafts.ts";
import { busyPolicy, type SendMode } from "./send_modes.ts";

interface Destination {
  sessionId: string | null;
  previous: string | null;
}

/** Whether there is something to send, and all of it is there. */
export function isReady(draft: Draft): boolean {
  const attachments = draft.attachments.value;
  return Boolean(draft.text.value.trim() || attachments.length) && attachments.every(isUploaded);
}

/** Return why something that was written cannot be sent yet. */
export function whyNotReady(draft: Draft): string {
  const missing = draft.attachments.value.filter((each) => !isUploaded(each));
  if (!missing.length) return "";
  const failed = missing.some((each) => each.kind === "file" && each.problem);
  return failed ? "Remove what could not be attached, or send it again" : "Waiting for the attachments";
}

const isUploaded = (each: Attachment) => each.kind === "picture" || each.path !== null;

/** Send what was written in one of the ways there are; nothing, as long as it is not all there. */
export async function sendAs(mode: SendMode, draft: Draft, destination: Destination, turns: readonly Turn[]) {
  if (!isReady(draft)) return;
  const turn = activeTurn(turns);
  const question = openQuestion(turn);
  if (mode.name === "answer" && turn && question && !commandIn(draft.text.value)) {
    return answerWritten(draft, destination.sessionId, turn.id, question.questionId);
  }
  const opens = await sendWritten(draft, destination, busyPolicy(mode));
  if (opens) awaitNewSession(opens);
}

/** Begin a conversation with a text that was not written in the field, where something else may stand. */
export async function sendText(text: string, previous: string | null): Promise<void> {
  const opening = openingFor(outgoing.value, previous);
  await send({ sessionId: null, opening, text, images: [], busy: null });
  awaitNewSession(opening.key);
}

/** Send what was written, and have an empty field.  Returns the key of the session that it opens, if it does. */
async function sendWritten(draft: Draft, { sessionId, previous }: Destination, busy: Busy | null) {
  const [text, attachments] = [draft.text.value, draft.attachments.value];
  const command = commandIn(text);
  if (command === "new" && sessionId) return startNext(draft, sessionId);
  if (command && !sessionId) return explain(command);
  const opening = sessionId ? null : openingFor(outgoing.value, previous);
  clearDraft(draft);
  dismissReplies(sessionId);
  try {
    await send({ ...messageContent(text, attachments), sessionId, opening, busy });
    return opening?.key ?? null;
  } catch (error) {
    // What could not be kept is not lost: it is where it was.
    prefill(sessionId, text, attachments);
    showError(error);
    return null;
  }
}

/** Answer the question that a turn waits with by what was written. */
async function answerWritten(draft: Draft, sessionId: string | null, turnId: string, questionId: string) {
  const [text, attachments] = [draft.text.value, draft.attachments.value];
  const message = messageContent(text, attachments);
  if (message.images.length) {
    showToast("An answer has no pictures: remove them, or choose to queue it as a message.", { bad: true });
    return;
  }
  clearDraft(draft);
  try {
    await answer(turnId, questionId, message.text);
  } catch (error) {
    prefill(sessionId, text, attachments);
    showError(error);
  }
}

/** Stop what a session is at.  What waits behind it goes on, unless that is not wanted either. */
export async function stopActive(turns: readonly Turn[]): Promise<void> {
  const [turn, waiting] = [activeTurn(turns), queuedTurns(turns)];
  if (!turn) return;
  await stop(turn);
  if (!waiting.length) return;
  const run = () => void attempt(() => Promise.all(waiting.map(stop)));
  const text = waiting.length === 1 ? "The message in line is" : `The ${waiting.length} messages in line are`;
  showToast(`Stopped. ${text} answered now.`, { action: { label: "Stop all", run } });
}

function startNext(draft: Draft, sessionId: string): null {
  clearDraft(draft);
  go(to.new(sessionId));
  return null;
}

function explain(command: string): null {
  showToast(`/${command} is about a conversation: send a message first, which begins one.`);
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
export function messageContent(text: string, attachments: readonly Attachment[]): Pick<NewMessage, "text" | "images"> {
  const pictures = attachments.filter((each): each is PictureAttachment => each.kind === "picture");
  const paths = attachments.flatMap((each) => (each.kind === "file" && each.path ? [each.path] : []));
  const names = pictures.map((each) => each.name);
  const images = pictures.map(({ mediaType, data, name }) => ({ media_type: mediaType, data, name }));
  return { text: messageText(text, paths, names), images };
}

/** Return the text that is sent.  Files are named in it, because the agent reads them by their names. */
function messageText(text: string, files: readonly string[], pictures: readonly string[]): string {
  const named = files.map((each) => `Attached: ${each}`);
  // No message is empty, and one with pictures alone says at least what they are called.
  const said = text.trim() || (named.length ? "" : pictures.map((each) => `Attached: ${each}`).join("\n"));
  return [said, named.join("\n")].filter(Boolean).join("\n\n");
}

/** Return a text without what was pasted into it last. */
export function withoutPasted(text: string, pasted: string): string {
  const at = text.lastIndexOf(pasted);
  return at < 0 ? text : text.slice(0, at) + text.slice(at + pasted.length);
}

/** Return what a person asked in a session, the newest first, each text once. */
export function earlierMessages(turns: readonly Turn[]): readonly string[] {
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

function awaitNewSession(key: string): void {
  tabStore.set(AWAITED, key);
  openAwaited();
}

/** Go where what was begun here has been opened.  Whoever looks elsewhere meanwhile is left there. */
export function useNewSession(begins: boolean): void {
  useSignalEffect(() => {
    if (outgoing.value.length && begins) openAwaited();
  });
  useEffect(() => (begins ? () => tabStore.remove(AWAITED) : undefined), [begins]);
}

function openAwaited(): void {
  const awaited = tabStore.get(AWAITED);
  const opened = outgoing.peek().find((each) => each.opening?.key === awaited && each.sessionId !== null);
  if (!opened?.sessionId) return;
  moveDraft(opened.sessionId);
  go(to.session(opened.sessionId));
}
