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
import { commandIn, needsConversation } from "./commands.tsx";
import { type Attachment, clearDraft, type Draft, moveDraft, type PictureAttachment, prefill } from "./drafts.ts";
import { busyPolicy, type SendMode } from "./send_modes.ts";

interface Destination {
  sessionId: string | null;
  previous: string | null;
}

/** Whether there is something to send, and every attachment is uploaded. */
export function isReady(draft: Draft): boolean {
  const attachments = draft.attachments.value;
  return Boolean(draft.text.value.trim() || attachments.length) && attachments.every(isUploaded);
}

/** Return why the draft cannot be sent yet. */
export function whyNotReady(draft: Draft): string {
  const missing = draft.attachments.value.filter((each) => !isUploaded(each));
  if (!missing.length) return "";
  const failed = missing.some((each) => each.kind === "file" && each.problem);
  return failed ? "An attachment failed. Remove it or send it again" : "Uploading attachments";
}

const isUploaded = (each: Attachment) => each.kind === "picture" || each.path !== null;

/** Send the draft in one of the ways that are offered; does nothing until it is ready. */
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

/** Begin a conversation with a text that is not the draft, which stays as it is. */
export async function sendText(text: string, previous: string | null): Promise<void> {
  const opening = openingFor(outgoing.value, previous);
  await send({ sessionId: null, opening, text, images: [], busy: null });
  awaitNewSession(opening.key);
}

/** Send the draft and clear it.  Returns the key of the session that this opens, if it opens one. */
async function sendWritten(draft: Draft, { sessionId, previous }: Destination, busy: Busy | null) {
  const [text, attachments] = [draft.text.value, draft.attachments.value];
  const command = commandIn(text);
  if (command && !sessionId && needsConversation(command)) return explain(command);
  const opening = sessionId ? null : openingFor(outgoing.value, previous);
  clearDraft(draft);
  dismissReplies(sessionId);
  try {
    await send({ ...messageContent(text, attachments), sessionId, opening, busy });
    if (command === "new") go(to.new(sessionId));
    return opening?.key ?? null;
  } catch (error) {
    // The draft could not be stored in the outbox, so it goes back into the field.
    prefill(sessionId, text, attachments);
    showError(error);
    return null;
  }
}

/** Answer the question of a waiting turn with the draft. */
async function answerWritten(draft: Draft, sessionId: string | null, turnId: string, questionId: string) {
  const [text, attachments] = [draft.text.value, draft.attachments.value];
  const message = messageContent(text, attachments);
  if (message.images.length) {
    showToast("An answer cannot have pictures. Remove them, or queue it as a message.", { bad: true });
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

/** Stop the active turn.  Queued turns run next, unless the person stops them too. */
export async function stopActive(turns: readonly Turn[]): Promise<void> {
  const [turn, waiting] = [activeTurn(turns), queuedTurns(turns)];
  if (!turn) return;
  await stop(turn);
  if (!waiting.length) return;
  const run = () => void attempt(() => Promise.all(waiting.map(stop)));
  const text = waiting.length === 1 ? "The queued message is" : `The ${waiting.length} queued messages are`;
  showToast(`Stopped. ${text} answered now.`, { action: { label: "Stop all", run } });
}

function explain(command: string): null {
  showToast(`/${command} needs a conversation. Send a message first.`);
  return null;
}

/** A person who sends the next message has read the replies to earlier commands. */
function dismissReplies(sessionId: string | null): void {
  for (const each of outgoing.value) {
    if (each.sessionId === sessionId && each.reply !== null) discard(each.key);
  }
}

/** Pasted texts longer than this are offered as an attachment. */
export const PASTE_LONG = 8_000;

/** Return a text and its attachments as the fields of a message. */
export function messageContent(text: string, attachments: readonly Attachment[]): Pick<NewMessage, "text" | "images"> {
  const pictures = attachments.filter((each): each is PictureAttachment => each.kind === "picture");
  const paths = attachments.flatMap((each) => (each.kind === "file" && each.path ? [each.path] : []));
  const names = pictures.map((each) => each.name);
  const images = pictures.map(({ mediaType, data, name }) => ({ media_type: mediaType, data, name }));
  return { text: messageText(text, paths, names), images };
}

/** Return the text of a message.  It names the files, because the agent reads them by their paths. */
function messageText(text: string, files: readonly string[], pictures: readonly string[]): string {
  const named = files.map((each) => `Attached: ${each}`);
  // No message is empty: one with pictures alone lists their names.
  const body = text.trim() || (named.length ? "" : pictures.map((each) => `Attached: ${each}`).join("\n"));
  return [body, named.join("\n")].filter(Boolean).join("\n\n");
}

/** Return a text without what was last pasted into it. */
export function withoutPasted(text: string, pasted: string): string {
  const at = text.lastIndexOf(pasted);
  return at < 0 ? text : text.slice(0, at) + text.slice(at + pasted.length);
}

/** Return the messages of a session, newest first, each text once. */
export function earlierMessages(turns: readonly Turn[]): readonly string[] {
  const texts = turns.flatMap((turn) => turn.items.filter(isMessage).map((each) => each.text));
  return [...new Set(texts.reverse())].filter(Boolean);
}

const isMessage = (item: Turn["items"][number]): item is MessageItem => item.role === "user";

/** Return the key that opens a session; messages that wait for the same session share it. */
export function openingFor(waiting: readonly Outgoing[], previous: string | null): Opening {
  const pending = waiting.find((each) => isUnopened(each) && each.opening?.previous_session_id === previous);
  return pending?.opening ?? { key: `web-${newKey()}`, previous_session_id: previous };
}

const isUnopened = (each: Outgoing) => each.sessionId === null && each.state !== "refused";

/** Kept per tab, across a reload: a session begun in one tab does not concern the others. */
const AWAITED = "holdfast.awaited";

function awaitNewSession(key: string): void {
  tabStore.set(AWAITED, key);
  openAwaited();
}

/** Go to the session once it is open.  A person who has gone elsewhere meanwhile stays there. */
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
