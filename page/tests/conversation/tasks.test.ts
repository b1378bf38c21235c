// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { tasks } from "../../src/conversation/tools/tasks.tsx";
import type { CallItem } from "../../src/journal/view.ts";
import type { SessionView } from "../../src/wire.ts";

const call = (more: Partial<CallItem>): CallItem => ({
  key: "k",
  at: 0,
  recovered: false,
  role: "tool",
  callId: "call_1",
  name: "delegate_task",
  args: { tasks: [{ goal: "Count" }, { goal: "Look" }] },
  result: null,
  outcome: null,
  endedAt: null,
  ...more,
});
const session = (more: Partial<SessionView>) => ({ turns: 1, activity: null, ...more }) as SessionView;

describe("delegated tasks", () => {
  it("are found among the sessions by the key of their call while they run", () => {
    const sessions = [
      session({ id: "ses_2", key: "delegate:now:1:turn_1:call_1:2", activity: "waiting" }),
      session({ id: "ses_9", key: "delegate:now:1:turn_9:call_1:1", activity: "running" }),
    ];
    expect(tasks(call({}), "turn_1", sessions)).toEqual([
      { goal: "Count", sessionId: null, state: "working", answer: "" },
      { goal: "Look", sessionId: "ses_2", state: "waiting", answer: "" },
    ]);
  });

  it("have the answers of the result, however many lines they have", () => {
    const result = "Task 1 (session ses_1): Count\n1\n\n2\n\nTask 2 (session ses_2): Look\nIt failed: no";
    expect(
      tasks(call({ result, outcome: "ok" }), "turn_1", []).map(({ sessionId, state, answer }) => [
        sessionId,
        state,
        answer,
      ]),
    ).toEqual([
      ["ses_1", "done", "1\n\n2"],
      ["ses_2", "done", "It failed: no"],
    ]);
  });

  it("are found by their handles if the call did not wait for them", () => {
    const result = "At work in the background.\n1. Count: turn turn_5 in session ses_5";
    const [first] = tasks(call({ args: { goal: "Count" }, result, outcome: "ok" }), "turn_1", [
      session({ id: "ses_5", key: "x", activity: "running" }),
    ]);
    expect(first).toMatchObject({ sessionId: "ses_5", state: "working" });
  });
});
