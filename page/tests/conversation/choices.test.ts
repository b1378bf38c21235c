// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { answerText, choices } from "../../src/conversation/items/choices.ts";
import type { QuestionItem } from "../../src/journal/view.ts";

const question = (more: Partial<QuestionItem>): QuestionItem => ({
  key: "k",
  at: 0,
  recovered: false,
  role: "question",
  questionId: "q",
  about: "approval",
  text: "?",
  choices: ["once", "session", "always", "deny"],
  detail: {},
  expiresAt: null,
  callId: null,
  name: null,
  args: null,
  answer: null,
  answeredAt: null,
  ...more,
});

describe("answers", () => {
  it("are shown as the gateway takes them: what is not clearly a yes is a no", () => {
    const told = (answer: string) => answerText(question({ answer }));
    expect(["Yes!", "ok", "session", "forever", "deny"].map(told)).toEqual([
      "Allowed once",
      "Allowed once",
      "Allowed for this session",
      "Always allowed",
      "Denied",
    ]);
    expect(told("constructor")).toBe("Denied: constructor");
    expect(told("cancelled")).toBe("Withdrawn");
  });

  it("to a plain question are shown as they are, even if they look like a decision", () => {
    const plain = question({ about: "answer", choices: ["once", "constructor"], answer: "once" });
    expect(answerText(plain)).toBe("Answered: once");
    expect(choices(plain).map(({ label, keys }) => [label, keys])).toEqual([
      ["once", ["1"]],
      ["constructor", ["2"]],
    ]);
  });

  it("to an approval have letter keys", () => {
    expect(choices(question({})).map(({ keys }) => keys)).toEqual([
      ["1", "y"],
      ["2", "s"],
      ["3", "a"],
      ["4", "d", "n"],
    ]);
  });
});
