/** The answers that a question offers, and what each means. */

import type { QuestionItem } from "../../journal/view.ts";
import { legibleText } from "../exact_text.tsx";
import { firstLine, textArgument } from "../tools/renderer.ts";

interface Choice {
  /** The answer that is sent. */
  value: string;
  label: string;
  means: string;
  look: "main" | "quiet" | "bad";
  /** The keys that choose it. */
  keys: readonly string[];
}

type Decision = Pick<Choice, "label" | "means" | "look"> & { letters: readonly string[] };

const DECISIONS: ReadonlyMap<string, Decision> = new Map<string, Decision>([
  ["once", { label: "Allow once", means: "Only this time, exactly as shown.", look: "main", letters: ["y"] }],
  [
    "session",
    {
      label: "For this session",
      means: "Every time in this conversation.",
      look: "quiet",
      letters: ["s"],
    },
  ],
  ["always", { label: "Always", means: "In every conversation, until you revoke it.", look: "quiet", letters: ["a"] }],
  ["deny", { label: "Deny", means: "The agent is told that it was denied.", look: "bad", letters: ["d", "n"] }],
  ["continue", { label: "Go on", means: "Allow the same amount again.", look: "main", letters: ["y"] }],
  ["stop", { label: "Stop here", means: "End the answer here.", look: "quiet", letters: ["n"] }],
]);
/** Only the first nine choices have digit keys. */
const DIGITS = 9;

/** Return the choices of a question.  For a plain question they are shown as they are. */
export function choices(question: QuestionItem): Choice[] {
  return question.choices.map((value, index) => {
    const decision = question.about === "answer" ? undefined : DECISIONS.get(value);
    const keys = [...(index < DIGITS ? [String(index + 1)] : []), ...(decision?.letters ?? [])];
    return {
      value,
      keys,
      label: decision?.label ?? value,
      means: decision?.means ?? "",
      look: decision?.look ?? "quiet",
    };
  });
}

/** The words that the gateway accepts as a decision. */
const ANSWERS: ReadonlyMap<string, string> = new Map([
  ...["once", "yes", "y", "ok", "okay", "allow", "approve", "approved"].map((word) => [word, "Allowed once"] as const),
  ...["session", "for this session"].map((word) => [word, "Allowed for this session"] as const),
  ...["always", "forever"].map((word) => [word, "Always allowed"] as const),
  ["expired", "Expired: denied"],
]);
const CANCELLED = "cancelled";

/** Return the subject of a question, in one line. */
export function subjectOf({ detail, text }: QuestionItem): string {
  return legibleText(
    firstLine(
      textArgument(detail, "command") || textArgument(detail, "target") || textArgument(detail, "tool") || text,
    ),
  );
}

/** Return an answer in words.  For an approval, every answer that is not clearly a yes is a no. */
export function answerText({ about, answer }: QuestionItem): string {
  const answered = (answer ?? "").trim();
  const word = answered.replace(/^[.!]+|[.!]+$/g, "").toLowerCase();
  if (word === CANCELLED) return "Withdrawn";
  if (about === "approval") return ANSWERS.get(word) ?? (word === "deny" ? "Denied" : `Denied: ${answered}`);
  if (about === "budget") return word === "continue" ? "Continued" : "Stopped";
  return `Answered: ${answered}`;
}
