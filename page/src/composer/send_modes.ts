/** The ways to send a message right now; the first is what Enter does. */

import type { Turn } from "../journal/view.ts";
import { openQuestion } from "../turns/status.ts";
import type { IconName } from "../ui/icon.tsx";
import { written } from "../ui/keys.tsx";
import type { Busy } from "../wire.ts";

export interface Way {
  name: "send" | "answer" | "queue" | "steer" | "interrupt";
  label: string;
  icon: IconName;
  /** What becomes of it, for whoever has to choose. */
  about: string;
}

const SEND: Way = { name: "send", label: "Send", icon: "send", about: "Send it" };
const ANSWER: Way = { name: "answer", label: "Answer", icon: "send", about: "Answer the question that is asked above" };
const QUEUE: Way = { name: "queue", label: "Queue", icon: "send", about: "It is answered after what runs now" };
const STEER: Way = { name: "steer", label: "Steer", icon: "steer", about: "It joins what runs now, at its next step" };
const INTERRUPT: Way = {
  name: "interrupt",
  label: "Interrupt",
  icon: "stop",
  about: "Stop what runs now, and answer this",
};

/** Return the ways to send while a turn is at work, or without one. */
export function waysBeside(turn: Turn | undefined): readonly [Way, ...Way[]] {
  if (!turn) return [SEND];
  if (openQuestion(turn)?.about === "answer") return [ANSWER, QUEUE, INTERRUPT];
  return [QUEUE, STEER, INTERRUPT];
}

/** Return what the gateway is told to do with a message that meets a busy session. */
export function busyBy(way: Way): Busy | null {
  return way.name === "send" || way.name === "answer" ? null : way.name;
}

/** Return what stands in the field while it is empty. */
export function placeholderFor(way: Way): string {
  if (way.name === "send") return "Write a message";
  return way.name === "answer" ? "Write your answer" : "Write on while it works";
}

/** Return which keys send. */
export function hintFor(ways: readonly Way[]): string {
  const steers = ways.some((each) => each.name === "steer");
  const first =
    ways[0]?.name === "queue" ? "Enter queues" : ways[0]?.name === "answer" ? "Enter answers" : "Enter sends";
  return steers
    ? `${first}, ${written("mod+enter").join("+")} steers`
    : `${first}, Shift+Enter for a new line, / for commands`;
}
