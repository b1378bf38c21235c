/** Tasks that were handed to sessions of their own, and what is known of them. */

import type { CallItem } from "../../journal/view.ts";
import type { SessionView } from "../../wire.ts";
import { fields, list, word } from "./arguments.ts";

export interface Task {
  goal: string;
  sessionId: string | null;
  state: "working" | "waiting" | "done" | "unknown";
  answer: string;
}

const HEAD = /^Task (\d+) \(session ([^)\s]+)\): .*$/gm;
const HANDLE = /^(\d+)\. .*: turn \S+ in session (\S+)$/gm;

/** Return the tasks of a call: those at work are looked up among the sessions, by the key that the call gave them. */
export function tasks(call: CallItem, turnId: string, sessions: readonly SessionView[]): Task[] {
  const goals = goalsOf(call.args);
  const answers = answersIn(call.result ?? "");
  const handles = new Map([...(call.result ?? "").matchAll(HANDLE)].map(([, number, id]) => [Number(number), id!]));
  return goals.map((goal, index) => {
    const number = index + 1;
    const answer = answers.get(number);
    if (answer) return { goal, sessionId: answer.sessionId, state: "done", answer: answer.text };
    const key = `:${turnId}:${call.callId}:${number}`;
    const session = sessions.find((each) => each.id === handles.get(number) || each.key.endsWith(key));
    return { goal, sessionId: handles.get(number) ?? session?.id ?? null, state: standing(call, session), answer: "" };
  });
}

function goalsOf(args: unknown): string[] {
  const several = list(args, "tasks").map((task) => word(fields(task), "goal"));
  return several.length ? several : [word(args, "goal")];
}

function answersIn(result: string): Map<number, { sessionId: string; text: string }> {
  const heads = [...result.matchAll(HEAD)];
  return new Map(
    heads.map((head, index) => {
      const text = result.slice(head.index + head[0].length, heads[index + 1]?.index).trim();
      return [Number(head[1]), { sessionId: head[2]!, text }];
    }),
  );
}

function standing(call: CallItem, session: SessionView | undefined): Task["state"] {
  if (session?.activity === "waiting") return "waiting";
  if (session?.activity) return "working";
  if (session && session.turns > 0) return "done";
  return call.outcome === null ? "working" : "unknown";
}
