/** Which turn of a session is active, and which turns are queued behind it. */

import { clockTime } from "../format.ts";
import type { MessageItem, QuestionItem, Turn } from "../journal/view.ts";

const ENDED: ReadonlySet<Turn["state"]> = new Set(["completed", "failed", "cancelled", "interrupted"]);

export const isOver = (turn: Pick<Turn, "state">) => ENDED.has(turn.state);

/** Return the turn that is running or waiting, else the first queued one. */
export function activeTurn(turns: readonly Turn[]): Turn | undefined {
  return (
    turns.find((each) => each.state === "running" || each.state === "waiting") ?? turns.find((each) => !isOver(each))
  );
}

/** Return the queued turns behind the active one. */
export function queuedTurns(turns: readonly Turn[]): readonly Turn[] {
  const first = activeTurn(turns);
  return turns.filter((each) => each.state === "queued" && each !== first);
}

/** Return the message of a turn. */
export function messageOf(turn: Turn): MessageItem | undefined {
  return turn.items.find((each) => each.role === "user");
}

/** Return the question that a turn waits with. */
export function openQuestion(turn: Turn | undefined): QuestionItem | undefined {
  if (turn?.state !== "waiting") return undefined;
  return turn.items.findLast((each): each is QuestionItem => each.role === "question" && each.answer === null);
}

const MINUTE_MS = 60_000;

/** Return in words when a turn that waits for its model is retried. */
export function nextTryText(at: number, now: number): string {
  const left = at - now;
  if (left < 1_000) return "Next try in a moment.";
  return left < MINUTE_MS ? `Next try in ${Math.round(left / 1_000)} s.` : `Next try at ${clockTime(at)}.`;
}
