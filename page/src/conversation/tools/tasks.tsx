/** Task tools: work delegated to other sessions, and the agent's own list of steps. */

import { plural } from "../../format.ts";
import type { CallItem } from "../../journal/view.ts";
import { to } from "../../router.ts";
import { sessions } from "../../sessions/store.ts";
import { Icon } from "../../ui/icon.tsx";
import { Badge, type Tone } from "../../ui/parts.tsx";
import type { SessionView } from "../../wire.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { Output } from "./output.tsx";
import { type CallProps, fields, firstLine, listArgument, type Renderer, textArgument } from "./renderer.ts";

const STATE_BADGES: Record<Task["state"], { tone: Tone; word: string }> = {
  working: { tone: "busy", word: "running" },
  waiting: { tone: "note", word: "waiting for you" },
  done: { tone: "good", word: "done" },
  unknown: { tone: "plain", word: "unknown" },
};

/** Tasks that other sessions work on in parallel. */
export const delegation: Renderer = {
  icon: "split",
  name: (call) => (call.outcome === null ? "Delegating" : "Delegated"),
  subject: (call) => {
    const several = listArgument(call.args, "tasks").length;
    return several ? plural(several, "task") : firstLine(textArgument(call.args, "goal"));
  },
  isOpen: () => true,
  Body: Delegation,
};

function Delegation({ call, turnId }: CallProps) {
  if (call.outcome === "error") return <Output text={call.result ?? ""} />;
  return (
    <ul class="tasks">
      {tasks(call, turnId, sessions.value).map((task, index) => (
        <li key={index}>
          <div class="task-head">
            <Badge tone={STATE_BADGES[task.state].tone}>{STATE_BADGES[task.state].word}</Badge>
            <span class="task-goal">{task.goal}</span>
            {task.sessionId && <a href={to.session(task.sessionId)}>Open</a>}
          </div>
          {task.answer && (
            <details>
              <summary>{firstLine(task.answer)}</summary>
              <Markdown text={task.answer} />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

interface Task {
  goal: string;
  sessionId: string | null;
  state: "working" | "waiting" | "done" | "unknown";
  answer: string;
}

const HEAD = /^Task (\d+) \(session ([^)\s]+)\): .*$/gm;
const HANDLE = /^(\d+)\. .*: turn \S+ in session (\S+)$/gm;

/** Return the tasks of a call.  Running ones are found among the sessions by the key that the call gave them. */
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
    return { goal, sessionId: handles.get(number) ?? session?.id ?? null, state: taskState(call, session), answer: "" };
  });
}

function goalsOf(args: unknown): string[] {
  const several = listArgument(args, "tasks").map((task) => textArgument(fields(task), "goal"));
  return several.length ? several : [textArgument(args, "goal")];
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

function taskState(call: CallItem, session: SessionView | undefined): Task["state"] {
  if (session?.activity === "waiting") return "waiting";
  if (session?.activity) return "working";
  if (session && session.turns > 0) return "done";
  return call.outcome === null ? "working" : "unknown";
}

const STATUS_WORDS = { done: "Done", in_progress: "In progress", pending: "To do" } as const;
type Status = keyof typeof STATUS_WORDS;

const statusOf = (item: unknown): Status =>
  (Object.keys(STATUS_WORDS) as Status[]).find((each) => each === textArgument(item, "status")) ?? "pending";

const todoItems = (call: CallItem) => listArgument(call.args, "items").map((item) => fields(item));

/** The agent's own to-do list. */
export const todo: Renderer = {
  icon: "check",
  name: () => "Steps",
  subject: (call) =>
    textArgument(
      todoItems(call).find((item) => item.status === "in_progress"),
      "text",
    ),
  outcome: (call) => {
    const all = call.outcome === "error" ? [] : todoItems(call);
    return all.length ? `${all.filter((item) => item.status === "done").length} of ${all.length}` : "";
  },
  isOpen: (call) => todoItems(call).length > 0,
  Body: Todo,
};

function Todo({ call }: CallProps) {
  const all = todoItems(call);
  if (!all.length || call.outcome === "error") return <Output text={call.result ?? ""} />;
  return (
    <ul class="steps-list">
      {all.map((item, index) => {
        const status = statusOf(item);
        return (
          <li key={index} class={status}>
            <span class="step-box">
              {status === "done" && <Icon name="check" size={12} />}
              <span class="unseen">{STATUS_WORDS[status]}: </span>
            </span>
            {textArgument(item, "text")}
          </li>
        );
      })}
    </ul>
  );
}
