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
  ["once", { label: "Allow once", means: "This one time, and only exactly this.", look: "main", letters: ["y"] }],
  [
    "session",
    {
      label: "For this session",
      means: "Each time, in this conversation.",
      look: "quiet",
      letters: ["s"],
    },
  ],
  [
    "always",
    { label: "Always", means: "In every conversation, until it is taken back.", look: "quiet", letters: ["a"] },
  ],
  ["deny", { label: "Deny", means: "It is not done, and the agent is told so.", look: "bad", letters: ["d", "n"] }],
  ["continue", { label: "Go on", means: "As much again may be used.", look: "main", letters: ["y"] }],
  ["stop", { label: "Stop here", means: "The answer ends with what there is.", look: "quiet", letters: ["n"] }],
]);
/** Only the first nine choices have digit keys. */
const DIGITS = 9;

/** Return the choices of a question.  For a plain question they are shown as they are. */
export function choices(question: QuestionItem): Choice[] {
  return question.choices.map((value, index) => {
    const known = question.about === "answer" ? undefined : DECISIONS.get(value);
    const keys = [...(index < DIGITS ? [String(index + 1)] : []), ...(known?.letters ?? [])];
    return { value, keys, label: known?.label ?? value, means: known?.means ?? "", look: known?.look ?? "quiet" };
  });
}

/** The words that the gateway accepts as a decision. */
const ANSWERS: ReadonlyMap<string, string> = new Map([
  ...["once", "yes", "y", "ok", "okay", "allow", "approve", "approved"].map((word) => [word, "Allowed once"] as const),
  ...["session", "for this session"].map((word) => [word, "Allowed for this session"] as const),
  ...["always", "forever"].map((word) => [word, "Always allowed"] as const),
  ["expired", "Nobody answered in time: denied"],
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
  const said = (answer ?? "").trim();
  const word = said.replace(/^[.!]+|[.!]+$/g, "").toLowerCase();
  if (word === CANCELLED) return "Not asked any more";
  if (about === "approval") return ANSWERS.get(word) ?? (word === "deny" ? "Denied" : `Denied: ${said}`);
  if (about === "budget") return word === "continue" ? "Went on" : "Stopped there";
  return `Answered: ${said}`;
}
