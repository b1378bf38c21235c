/** Sending what was written: through the outbox, so that it is kept before the field is empty. */

import type { Turn } from "../journal/view.ts";
import { discard, outgoing, send } from "../outbox/outbox.ts";
import { go, to } from "../router.ts";
import { answer, stop } from "../turns/actions.ts";
import { atWork, inLine, openQuestion } from "../turns/standing.ts";
import { attempt, tell, tellProblem } from "../ui/toast.tsx";
import type { Busy } from "../wire.ts";
import { awaitOpening } from "./arrival.ts";
import { commandIn } from "./commands.ts";
import { carried } from "./message.ts";
import { openingFor } from "./opening.ts";
import { busyBy, type Way } from "./ways.ts";
import { type Attachment, clear, fill, type Writing } from "./writing.ts";

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
