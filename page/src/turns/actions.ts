/** What a person can do with a turn.  Each action throws the gateway's refusal, in words that can be shown. */

import { effect } from "@preact/signals";
import { getFile, post, Refused, Unanswered } from "../api.ts";
import { base64, newKey } from "../bytes.ts";
import type { Conversation } from "../journal/conversation.ts";
import type { Turn } from "../journal/view.ts";
import type { OutgoingPicture } from "../outbox/message.ts";
import { discard, outgoing, send } from "../outbox/outbox.ts";
import { go, to } from "../router.ts";
import type { Fork, Receipt, SessionView, TurnView } from "../wire.ts";
import { isOver, messageOf } from "./status.ts";

const UNDO = "/undo";
const RETRY = "/retry";

/** Stop a turn, or remove it from the queue.  Its text stays; a turn that already ended is fine. */
export async function stop(turn: Pick<Turn, "id">): Promise<void> {
  try {
    await post<TurnView>(`${path(turn.id)}/cancel`);
  } catch (error) {
    if (!(error instanceof Refused && error.status === 409)) throw error;
  }
}

/**
 * Resume an interrupted turn.  The last turn, if it ended, is answered again and its old answer is left out; an earlier
 * one is asked again at the end.
 */
export async function retry(conversation: Conversation, turn: Pick<Turn, "id" | "state">): Promise<void> {
  const isLast = conversation.turns.value.at(-1)?.id === turn.id;
  if (isLast && turn.state !== "interrupted" && conversation.session.value?.state === "open") {
    const headers = { "Idempotency-Key": newKey() };
    await post<Receipt>(`/api/sessions/${encodeURIComponent(conversation.id)}/messages`, { text: RETRY }, { headers });
  } else {
    follow(await post<TurnView>(`${path(turn.id)}/retry`));
  }
}

/** Copy a session up to and including a turn, and go to the copy. */
export async function forkThrough(sessionId: string, turnId: string): Promise<void> {
  go(to.session(await fork(sessionId, { through: turnId })));
}

/**
 * Replace a message.  The last exchange is replaced; an earlier one stays, and the new message begins a copy of
 * everything before it.
 */
export async function editAndResend(conversation: Conversation, turn: Turn, text: string): Promise<void> {
  const images = await picturesOf(turn);
  const draft = { opening: null, text, images, busy: null } as const;
  if (conversation.turns.value.at(-1)?.id !== turn.id) {
    const sessionId = await fork(conversation.id, { before: turn.id });
    await send({ ...draft, sessionId });
    go(to.session(sessionId));
    return;
  }
  // While the gateway is away, the session may have later messages than this page shows.
  if (conversation.link.value === "away") throw new Unanswered();
  if (!isOver(turn)) await stop(turn);
  dropReply(await send({ ...draft, sessionId: conversation.id, text: UNDO, images: [] }));
  await send({ ...draft, sessionId: conversation.id });
}

async function fork(sessionId: string, where: Fork): Promise<string> {
  return (await post<SessionView>(`/api/sessions/${encodeURIComponent(sessionId)}/fork`, where)).id;
}

/** Discard the reply to a command that the person did not write. */
function dropReply(key: string): void {
  const end = effect(() => {
    const command = outgoing.value.find((each) => each.key === key);
    if (command && command.reply === null && command.state !== "refused") return;
    if (command?.state === "accepted") discard(key);
    // An effect cannot dispose itself while it starts.
    queueMicrotask(() => end());
  });
}

/** Answer the question of a waiting turn. */
export async function answer(turnId: string, questionId: string, text: string): Promise<void> {
  await post<TurnView>(`${path(turnId)}/answer`, { text, question_id: questionId });
}

/** Return the pictures of a turn's message, so that they can be sent again. */
async function picturesOf(turn: Turn): Promise<OutgoingPicture[]> {
  const message = messageOf(turn);
  return Promise.all((message?.images ?? []).map((image, number) => picture(turn.id, number, image.media_type)));
}

async function picture(turnId: string, number: number, mediaType: string): Promise<OutgoingPicture> {
  const file = await getFile(`${path(turnId)}/images/${number}`);
  return {
    media_type: mediaType,
    data: base64(new Uint8Array(await file.arrayBuffer())),
    name: `picture ${number + 1}`,
  };
}

/** A turn of an ended session continues in its successor. */
function follow(turn: TurnView): void {
  const here = to.session(turn.session_id);
  if (!location.hash.startsWith(here)) go(here);
}

const path = (turnId: string) => `/api/turns/${encodeURIComponent(turnId)}`;
