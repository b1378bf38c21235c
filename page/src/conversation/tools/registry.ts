/** Which tool is shown how.  What is not here is shown by its arguments and its result. */

import { word } from "./arguments.ts";
import { delegation } from "./delegation.tsx";
import { editFile, readFile, searchFiles, writeFile } from "./files.tsx";
import { generic, told } from "./generic.tsx";
import { backgroundProcess } from "./process.tsx";
import type { Renderer } from "./renderer.ts";
import { terminal } from "./terminal.tsx";
import { todo } from "./todo.tsx";
import { fetching, sessionSearch, webSearch } from "./web.tsx";

const MEMORY: ReadonlyMap<string, string> = new Map(
  Object.entries({
    add: "Remember",
    replace: "Remember anew",
    remove: "Forget",
    search: "Search memory",
    list: "Look at memory",
  }),
);

const RENDERERS: ReadonlyMap<string, Renderer> = new Map([
  ["ask_user", told("question", "Question", "question")],
  ["delegate_task", delegation],
  ["edit_file", editFile],
  ["fetch", fetching],
  ["keep_note", told("edit", "Note", "text")],
  ["memory", { ...told("brain", "Memory", "text"), name: (call) => MEMORY.get(word(call.args, "action")) ?? "Memory" }],
  ["process", backgroundProcess],
  ["read_file", readFile],
  ["schedule", told("clock", "Schedule", "name")],
  ["search_files", searchFiles],
  ["send_message", told("send", "Message", "text")],
  ["session_search", sessionSearch],
  ["skill", told("book", "Skill", "name")],
  ["terminal", terminal],
  ["todo", todo],
  ["wait", { ...generic, icon: "clock", name: () => "Waiting" }],
  ["web_search", webSearch],
  ["write_file", writeFile],
]);

export const rendererOf = (name: string): Renderer => RENDERERS.get(name) ?? generic;
