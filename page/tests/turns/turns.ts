/** Turns for tests, with some fields set. */

import type { Item, MessageItem, QuestionItem, Turn } from "../../src/journal/view.ts";
import type { About, TurnState } from "../../src/wire.ts";

const NOTHING = { model: "", input: 0, output: 0, cached: 0, costMicros: 0 };

export function turn(id: string, state: TurnState, items: readonly Item[] = []): Turn {
  return {
    id,
    order: 1,
    acceptedAt: 0,
    startedAt: null,
    endedAt: null,
    state,
    attempt: 1,
    resumed: false,
    hidden: false,
    error: "",
    cause: "",
    wait: null,
    items,
    used: NOTHING,
  };
}

export function message(text: string): MessageItem {
  return { role: "user", key: text, at: 0, recovered: false, text, images: [], turnId: "", joinedFrom: null };
}

export function question(about: About, answer: string | null = null): QuestionItem {
  return {
    role: "question",
    key: about,
    at: 0,
    recovered: false,
    questionId: about,
    about,
    text: "",
    choices: [],
    detail: {},
    expiresAt: null,
    callId: null,
    name: null,
    args: null,
    answer,
    answeredAt: null,
  };
}
