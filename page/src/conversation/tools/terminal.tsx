/** Shell tools: commands, and processes in the background. */

import type { CallItem } from "../../journal/view.ts";
import { to } from "../../router.ts";
import { LongText } from "../../ui/folding.tsx";
import { ExactText } from "../exact_text.tsx";
import { Output } from "./output.tsx";
import {
  asText,
  type CallProps,
  firstLine,
  flagArgument,
  type Renderer,
  resultFields,
  textArgument,
} from "./renderer.ts";

const ENDED = /^(Exit code (\d+)|Ended by signal (\d+)|Timed out)[^\n]*/;

/** A shell command and its output. */
export const terminal: Renderer = {
  icon: "terminal",
  name: (call) => (flagArgument(call.args, "background") ? "In the background" : "Terminal"),
  subject: (call) => firstLine(textArgument(call.args, "command")),
  outcome,
  isOpen: (call) => Boolean(outcome(call)),
  Body: Terminal,
};

/** Say how a command ended, unless it succeeded. */
function outcome(call: CallItem): string {
  const [, ended, code, signal] = ENDED.exec(call.result ?? "") ?? [];
  if (code) return code === "0" ? "" : `exit ${code}`;
  return signal ? `signal ${signal}` : ended === "Timed out" ? "timed out" : "";
}

function Terminal({ call }: CallProps) {
  const workdir = textArgument(call.args, "workdir");
  const started = resultFields(call.result);
  return (
    <>
      <LongText text={`$ ${textArgument(call.args, "command")}`}>
        {(visible) => <ExactText text={visible} label="Command" />}
      </LongText>
      {workdir && <p class="call-more">In the folder {workdir}</p>}
      {started ? <Started processId={textArgument(started, "process_id")} /> : <Printed result={call.result ?? ""} />}
    </>
  );
}

function Started({ processId }: { processId: string }) {
  return (
    <p class="call-more">
      It keeps running, even while the gateway restarts: <a href={to.control("processes", processId)}>see its output</a>
      .
    </p>
  );
}

/** The first line says how the command ended; its output follows. */
function Printed({ result }: { result: string }) {
  const ended = ENDED.exec(result)?.[0];
  if (ended === undefined) return result ? <Output text={result} end="tail" /> : null;
  const printed = result.slice(ended.length).replace(/^\n+/, "");
  return (
    <>
      {printed && <Output text={printed} end="tail" />}
      <p class="call-more">{ended}</p>
    </>
  );
}

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    list: "List processes",
    poll: "Check a process",
    log: "Read the log of a process",
    wait: "Wait for a process",
    kill: "Stop a process",
    write: "Write to a process",
    close: "Close the input of a process",
  }),
);

/** Actions on background commands. */
export const backgroundProcess: Renderer = {
  icon: "terminal",
  name: (call) => NAMES.get(textArgument(call.args, "action")) ?? "Process",
  subject: (call) => textArgument(call.args, "process_id"),
  outcome: (call) => textArgument(resultFields(call.result), "state"),
  Body: ProcessOutput,
};

function ProcessOutput({ call }: CallProps) {
  const found = resultFields(call.result);
  const id = textArgument(call.args, "process_id");
  if (!found || call.outcome !== "ok") return <Output text={call.result ?? ""} />;
  if (typeof found.output !== "string") return <Output text={asText(found)} />;
  return (
    <>
      {found.output ? <Output text={found.output} end="tail" /> : <p class="call-more">No output.</p>}
      <p class="call-more">
        {outcomeText(call)} {id && <a href={to.control("processes", id)}>Show the process</a>}
      </p>
    </>
  );
}

function outcomeText(call: CallItem): string {
  const found = resultFields(call.result);
  const outcome = textArgument(found, "outcome") || textArgument(found, "timed_out");
  return outcome ? `${outcome[0]!.toUpperCase()}${outcome.slice(1)}.` : "";
}
