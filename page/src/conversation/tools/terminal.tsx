import type { CallItem } from "../../journal/view.ts";
import { to } from "../../router.ts";
import { Exact } from "../items/exact.tsx";
import { answered, firstLine, flag, word } from "./arguments.ts";
import { Folded } from "./folded.tsx";
import { Output } from "./output.tsx";
import type { CallProps, Renderer } from "./renderer.ts";

const ENDED = /^(Exit code (\d+)|Ended by signal (\d+)|Timed out)[^\n]*/;

/** A command of the shell, with what it printed. */
export const terminal: Renderer = {
  icon: "terminal",
  name: (call) => (flag(call.args, "background") ? "In the background" : "Terminal"),
  subject: (call) => firstLine(word(call.args, "command")),
  outcome,
  isOpen: (call) => Boolean(outcome(call)),
  Body: Terminal,
};

/** Say how a command ended, unless all was well. */
function outcome(call: CallItem): string {
  const [, said, code, signal] = ENDED.exec(call.result ?? "") ?? [];
  if (code) return code === "0" ? "" : `exit ${code}`;
  return signal ? `signal ${signal}` : said === "Timed out" ? "timed out" : "";
}

function Terminal({ call }: CallProps) {
  const workdir = word(call.args, "workdir");
  const started = answered(call.result);
  return (
    <>
      <Folded text={`$ ${word(call.args, "command")}`}>{(shown) => <Exact text={shown} label="Command" />}</Folded>
      {workdir && <p class="call-more">In the folder {workdir}</p>}
      {started ? <Started processId={word(started, "process_id")} /> : <Printed result={call.result ?? ""} />}
    </>
  );
}

function Started({ processId }: { processId: string }) {
  return (
    <p class="call-more">
      It goes on by itself, also while the gateway restarts:{" "}
      <a href={to.control("processes", processId)}>see what it prints</a>.
    </p>
  );
}

/** The first line says how it ended; what was printed stands below it. */
function Printed({ result }: { result: string }) {
  const said = ENDED.exec(result)?.[0];
  if (said === undefined) return result ? <Output text={result} end="tail" /> : null;
  const printed = result.slice(said.length).replace(/^\n+/, "");
  return (
    <>
      {printed && <Output text={printed} end="tail" />}
      <p class="call-more">{said}</p>
    </>
  );
}
