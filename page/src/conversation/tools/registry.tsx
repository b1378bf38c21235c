/** The registry of tool renderers.  A tool that is not in it shows its arguments and its result. */

import type { CallItem } from "../../journal/view.ts";
import { editFile, readFile, searchFiles, writeFile } from "./files.tsx";
import { Output } from "./output.tsx";
import { asText, type CallProps, fields, firstLine, type Renderer, textArgument } from "./renderer.ts";
import { delegation, todo } from "./tasks.tsx";
import { backgroundProcess, terminal } from "./terminal.tsx";
import { fetching, sessionSearch, webSearch } from "./web.tsx";

const SUBJECT_MAX_CHARS = 120;

/** Any tool without a renderer of its own: its arguments and its result. */
const generic: Renderer = {
  icon: "tool",
  name: (call) => call.name.replace(/^mcp_+/, "").replaceAll("_", " "),
  subject,
  Body: Generic,
};

/** A tool that is best described by one of its arguments. */
function argumentRenderer(icon: Renderer["icon"], name: string, argument: string): Renderer {
  return {
    icon,
    name: () => name,
    subject: (call) => firstLine(textArgument(call.args, argument)),
    Body: Generic,
  };
}

function subject(call: CallItem): string {
  const values = Object.values(fields(call.args)).filter((value) =>
    ["string", "number", "boolean"].includes(typeof value),
  );
  return firstLine(values.map(String).join(" ")).slice(0, SUBJECT_MAX_CHARS);
}

function Generic({ call }: CallProps) {
  const hasArguments =
    Object.keys(fields(call.args)).length > 0 || (call.args !== null && typeof call.args !== "object");
  return (
    <>
      {hasArguments && (
        <>
          <p class="call-label">Arguments</p>
          <Output text={asText(call.args)} label="Arguments" />
        </>
      )}
      {call.result && (
        <>
          <p class="call-label">Result</p>
          <Output text={prettyPrinted(call.result)} label="Result" />
        </>
      )}
    </>
  );
}

/** JSON on one line is pretty-printed; other text stays the same. */
function prettyPrinted(result: string): string {
  if (!/^[[{]/.test(result) || result.includes("\n")) return result;
  try {
    return JSON.stringify(JSON.parse(result), null, 2);
  } catch {
    return result;
  }
}

const MEMORY: ReadonlyMap<string, string> = new Map(
  Object.entries({
    add: "Remember",
    replace: "Update memory",
    remove: "Forget",
    search: "Search memory",
    list: "List memories",
  }),
);

const RENDERERS: ReadonlyMap<string, Renderer> = new Map([
  ["ask_user", argumentRenderer("question", "Question", "question")],
  ["delegate_task", delegation],
  ["edit_file", editFile],
  ["fetch", fetching],
  ["keep_note", argumentRenderer("edit", "Note", "text")],
  [
    "memory",
    {
      ...argumentRenderer("brain", "Memory", "text"),
      name: (call) => MEMORY.get(textArgument(call.args, "action")) ?? "Memory",
    },
  ],
  ["process", backgroundProcess],
  ["read_file", readFile],
  ["schedule", argumentRenderer("clock", "Schedule", "name")],
  ["search_files", searchFiles],
  ["send_file", argumentRenderer("send", "File", "path")],
  ["send_message", argumentRenderer("send", "Message", "text")],
  ["session_search", sessionSearch],
  ["skill", argumentRenderer("book", "Skill", "name")],
  ["terminal", terminal],
  ["todo", todo],
  ["wait", { ...generic, icon: "clock", name: () => "Waiting" }],
  ["web_search", webSearch],
  ["write_file", writeFile],
]);

export const rendererOf = (name: string): Renderer => RENDERERS.get(name) ?? generic;
