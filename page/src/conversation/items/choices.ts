/** What can be answered to a question, and what each answer means. */

import type { QuestionItem } from "../../journal/view.ts";
import { legible } from "../legible.ts";
import { firstLine, word } from "../tools/arguments.ts";

export interface Choice {
  /** What is sent. */
  value: string;
  label: string;
  means: string;
  look: "main" | "quiet" | "bad";
  /** The keys that choose it. */
  keys: readonly string[];
}

const KNOWN: Record<string, Omit<Choice, "value" | "keys">> = {
  once: { label: "Allow once", means: "This one time, and only exactly this.", look: "main" },
  session: { label: "For this session", means: "Whenever it comes up again in this conversation.", look: "quiet" },
  always: { label: "Always", means: "In every conversation, until it is taken back.", look: "quiet" },
  deny: { label: "Deny", means: "It is not done, and the agent is told so.", look: "bad" },
  continue: { label: "Go on", means: "As much again may be used.", look: "main" },
  stop: { label: "Stop here", means: "The answer ends with what there is.", look: "quiet" },
};
const LETTERS: Record<string, readonly string[]> = {
  once: ["y"],
  session: ["s"],
  always: ["a"],
  deny: ["d", "n"],
  continue: ["y"],
  stop: ["n"],
};

/** Return what to choose from.  The words of a plain question mean what they say. */
export function choices(question: QuestionItem): Choice[] {
  return question.choices.map((value, index) => {
    const known = question.about === "answer" ? undefined : KNOWN[value];
    const keys = [...(index < 9 ? [String(index + 1)] : []), ...(known ? (LETTERS[value] ?? []) : [])];
    return { value, keys, ...(known ?? { label: value, means: "", look: "quiet" as const }) };
  });
}

const ANSWERED: Record<string, string> = {
  once: "Allowed once",
  session: "Allowed for this session",
  always: "Always allowed",
  deny: "Denied",
  expired: "Nobody answered in time: denied",
  cancelled: "Not asked any more",
  continue: "Went on",
  stop: "Stopped there",
};

/** Return what it was about, in a line. */
export function subjectOf({ detail, text }: QuestionItem): string {
  return legible(firstLine(word(detail, "command") || word(detail, "target") || word(detail, "tool") || text));
}

/** Return an answer as it is told afterwards. */
export function toldAnswer(question: QuestionItem): string {
  const answer = question.answer ?? "";
  if (question.about === "answer" && answer !== "cancelled") return `Answered: ${answer}`;
  return (
    ANSWERED[answer.trim().toLowerCase()] ??
    (question.about === "approval" ? `Denied: ${answer}` : `Answered: ${answer}`)
  );
}
