import type { CallItem } from "../../journal/view.ts";
import { to } from "../../router.ts";
import { answered, word, written } from "./arguments.ts";
import { Output } from "./output.tsx";
import type { CallProps, Renderer } from "./renderer.ts";

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    list: "List processes",
    poll: "Look at a process",
    log: "Read the log of a process",
    wait: "Wait for a process",
    kill: "End a process",
    write: "Type into a process",
    close: "End the input of a process",
  }),
);

/** What is done with commands that run in the background. */
export const backgroundProcess: Renderer = {
  icon: "terminal",
  name: (call) => NAMES.get(word(call.args, "action")) ?? "Process",
  subject: (call) => word(call.args, "process_id"),
  outcome: (call) => word(answered(call.result), "state"),
  Body: Looked,
};

function Looked({ call }: CallProps) {
  const found = answered(call.result);
  const id = word(call.args, "process_id");
  if (!found || call.outcome !== "ok") return <Output text={call.result ?? ""} />;
  if (typeof found.output !== "string") return <Output text={written(found)} />;
  return (
    <>
      {found.output ? <Output text={found.output} end="tail" /> : <p class="call-more">It printed nothing.</p>}
      <p class="call-more">
        {said(call)} {id && <a href={to.control("processes", id)}>See the process</a>}
      </p>
    </>
  );
}

function said(call: CallItem): string {
  const found = answered(call.result);
  const outcome = word(found, "outcome") || word(found, "timed_out");
  return outcome ? `${outcome[0]!.toUpperCase()}${outcome.slice(1)}.` : "";
}
