import { plural } from "../../format.ts";
import type { CallItem } from "../../journal/view.ts";
import { Code } from "../markdown/code.tsx";
import { languageOfFile } from "../markdown/languages.ts";
import { Scrollable } from "../scrollable.tsx";
import { tense, word } from "./arguments.ts";
import { type Line, replacement, tally, unified } from "./changes.ts";
import { Difference } from "./difference.tsx";
import { Output } from "./output.tsx";
import type { CallProps, Renderer } from "./renderer.ts";

const NUMBERED = /^ *\d+\t/;
const HIT = /^(.+?):(\d+): (.*)$/;

const path = (call: CallItem) => word(call.args, "path");

export const readFile: Renderer = {
  icon: "file",
  name: (call) => tense(call, "Reading", "Read", "Read"),
  subject: path,
  Body: Read,
};

export const editFile: Renderer = {
  icon: "edit",
  name: (call) => tense(call, "Editing", "Edited", "Edit"),
  subject: path,
  outcome: (call) => (call.outcome === "ok" ? told(changes(call)) : ""),
  isOpen: (call) => call.outcome === "ok",
  Body: Changed,
};

export const writeFile: Renderer = {
  ...editFile,
  name: (call) => (call.result?.startsWith("Overwrote") ? "Overwrote" : tense(call, "Writing", "Wrote", "Write")),
  outcome: (call) => (call.outcome === "ok" ? plural(tally(changes(call)).added, "line") : ""),
  isOpen: () => false,
};

export const searchFiles: Renderer = {
  icon: "search",
  name: (call) => tense(call, "Searching files", "Searched files", "Search files"),
  subject: (call) => word(call.args, "pattern"),
  Body: Found,
};

function told(lines: readonly Line[]): string {
  const { added, removed } = tally(lines);
  return [added && `+${added}`, removed && `−${removed}`].filter(Boolean).join(" ");
}

/** The result knows at which lines; the arguments know it all. */
function changes(call: CallItem): Line[] {
  const found = unified(call.result ?? "");
  if (found.length) return found;
  return replacement(word(call.args, "old"), word(call.args, "new") || word(call.args, "content"));
}

function Changed({ call }: CallProps) {
  return (
    <>
      <Difference lines={changes(call)} />
      {call.outcome === "error" && <Output text={call.result ?? ""} />}
    </>
  );
}

function Read({ call }: CallProps) {
  const lines = (call.result ?? "").split("\n");
  if (call.outcome !== "ok" || !lines.some((line) => NUMBERED.test(line))) return <Output text={call.result ?? ""} />;
  const notes = lines.filter((line) => !NUMBERED.test(line));
  const text = lines.filter((line) => NUMBERED.test(line)).map((line) => line.replace(NUMBERED, ""));
  return (
    <>
      <Code text={text.join("\n")} language={languageOfFile(path(call))} />
      {notes.length > 0 && <p class="call-more">{notes.join(" ")}</p>}
    </>
  );
}

function Found({ call }: CallProps) {
  const lines = (call.result ?? "").split("\n");
  if (!lines.some((line) => HIT.test(line))) return <Output text={call.result ?? ""} />;
  return (
    <Scrollable class="output hits" label="Found">
      {lines.map((line, index) => {
        const [, file, number, text] = HIT.exec(line) ?? [];
        return (
          <div key={index}>
            {file ? (
              <>
                <span class="hit-place">{`${file}:${number}`}</span> {text}
              </>
            ) : (
              line
            )}
          </div>
        );
      })}
    </Scrollable>
  );
}
