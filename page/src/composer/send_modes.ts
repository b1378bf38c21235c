/** The ways to send a message right now; the first is what Enter does. */

import type { Turn } from "../journal/view.ts";
import { openQuestion } from "../turns/status.ts";
import type { IconName } from "../ui/icon.tsx";
import { keyLabels } from "../ui/keys.tsx";
import type { Busy } from "../wire.ts";

export interface SendMode {
  name: "send" | "answer" | "queue" | "steer" | "interrupt";
  label: string;
  icon: IconName;
  /** What happens to the message, as help for the choice. */
  about: string;
}

const SEND: SendMode = { name: "send", label: "Send", icon: "send", about: "Send the message" };
const ANSWER: SendMode = {
  name: "answer",
  label: "Answer",
  icon: "send",
  about: "Answer the question above",
};
const QUEUE: SendMode = { name: "queue", label: "Queue", icon: "send", about: "Answered after the current turn" };
const STEER: SendMode = {
  name: "steer",
  label: "Steer",
  icon: "steer",
  about: "Joins the current turn at its next step",
};
const INTERRUPT: SendMode = {
  name: "interrupt",
  label: "Interrupt",
  icon: "stop",
  about: "Stops the current turn and answers this",
};

/** Return the ways to send next to the active turn, or without one. */
export function sendModes(turn: Turn | undefined): readonly [SendMode, ...SendMode[]] {
  if (!turn) return [SEND];
  if (openQuestion(turn)?.about === "answer") return [ANSWER, QUEUE, INTERRUPT];
  return [QUEUE, STEER, INTERRUPT];
}

/** Return what the gateway does with the message while the session is busy. */
export function busyPolicy(mode: SendMode): Busy | null {
  return mode.name === "send" || mode.name === "answer" ? null : mode.name;
}

/** Return the placeholder of the empty field. */
export function placeholderFor(mode: SendMode): string {
  if (mode.name === "send") return "Write a message";
  return mode.name === "answer" ? "Write your answer" : "Write a message while it works";
}

/** Return which keys send. */
export function hintFor(modes: readonly SendMode[]): string {
  const steers = modes.some((each) => each.name === "steer");
  const first =
    modes[0]?.name === "queue" ? "Enter queues" : modes[0]?.name === "answer" ? "Enter answers" : "Enter sends";
  return steers
    ? `${first}, ${keyLabels("mod+enter").join("+")} steers`
    : `${first}, Shift+Enter for a new line, / for commands`;
}
