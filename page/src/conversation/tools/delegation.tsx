import { sessions } from "../../activity.ts";
import { plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Badge, type Tone } from "../../ui/parts.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { firstLine, list, word } from "./arguments.ts";
import { Output } from "./output.tsx";
import type { CallProps, Renderer } from "./renderer.ts";
import { type Task, tasks } from "./tasks.ts";

const SHOWN: Record<Task["state"], { tone: Tone; word: string }> = {
  working: { tone: "busy", word: "at work" },
  waiting: { tone: "note", word: "waits for you" },
  done: { tone: "good", word: "done" },
  unknown: { tone: "plain", word: "not known" },
};

/** Tasks that other sessions work on, side by side. */
export const delegation: Renderer = {
  icon: "split",
  name: (call) => (call.outcome === null ? "Delegating" : "Delegated"),
  subject: (call) => {
    const several = list(call.args, "tasks").length;
    return several ? plural(several, "task") : firstLine(word(call.args, "goal"));
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
            <Badge tone={SHOWN[task.state].tone}>{SHOWN[task.state].word}</Badge>
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
