import type { SessionView } from "../../src/wire.ts";

/** The source of a session that began on the page. */
export const UNSAID = {
  chat_id: null,
  chat_name: null,
  chat_type: null,
  thread_id: null,
  user_id: null,
  user_name: null,
};

/** A session for tests, with some fields set. */
export function session(given: Partial<SessionView>): SessionView {
  return {
    id: "ses_1",
    key: "key",
    channel: "web",
    source: UNSAID,
    model: null,
    chosen_model: null,
    state: "open",
    title: null,
    created_at: 0,
    updated_at: 0,
    ended_at: null,
    end_reason: null,
    auto_reset_reason: null,
    resume_pending: false,
    resume_reason: null,
    parent_id: null,
    one_shot: false,
    pinned: false,
    archived: false,
    turns: 1,
    seq: 1,
    label: "label",
    activity: null,
    ...given,
  };
}
