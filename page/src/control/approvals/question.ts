/** A question of the list, as conversations have it. */

import type { QuestionItem } from "../../journal/view.ts";
import type { ApprovalView } from "../../wire.ts";

export function questionOf(asked: ApprovalView): QuestionItem {
  return {
    key: asked.id,
    at: asked.asked_at,
    recovered: false,
    role: "question",
    questionId: asked.question_id,
    about: asked.about,
    text: asked.text,
    choices: asked.choices,
    detail: asked.detail,
    expiresAt: asked.expires_at,
    callId: null,
    name: null,
    args: null,
    answer: null,
    answeredAt: null,
  };
}
