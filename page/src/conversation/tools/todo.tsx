import type { CallItem } from "../../journal/view.ts";
import { Icon } from "../../ui/icon.tsx";
import { fields, list, word } from "./arguments.ts";
import { Output } from "./output.tsx";
import type { CallProps, Renderer } from "./renderer.ts";

const SAID = { done: "Done", in_progress: "At it", pending: "To do" } as const;
type Status = keyof typeof SAID;

const statusOf = (item: unknown): Status =>
  (Object.keys(SAID) as Status[]).find((each) => each === word(item, "status")) ?? "pending";

const items = (call: CallItem) => list(call.args, "items").map((item) => fields(item));

/** The agent's own list of what is to be done. */
export const todo: Renderer = {
  icon: "check",
  name: () => "Steps",
  subject: (call) =>
    word(
      items(call).find((item) => item.status === "in_progress"),
      "text",
    ),
  outcome: (call) => {
    const all = call.outcome === "error" ? [] : items(call);
    return all.length ? `${all.filter((item) => item.status === "done").length} of ${all.length}` : "";
  },
  isOpen: (call) => items(call).length > 0,
  Body: Todo,
};

function Todo({ call }: CallProps) {
  const all = items(call);
  if (!all.length || call.outcome === "error") return <Output text={call.result ?? ""} />;
  return (
    <ul class="steps-list">
      {all.map((item, index) => {
        const status = statusOf(item);
        return (
          <li key={index} class={status}>
            <span class="step-box">
              {status === "done" && <Icon name="check" size={12} />}
              <span class="unseen">{SAID[status]}: </span>
            </span>
            {word(item, "text")}
          </li>
        );
      })}
    </ul>
  );
}
