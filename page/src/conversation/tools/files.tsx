/** File tools: read, edit, write and search, with diffs. */

import { useState } from "preact/hooks";
import { count, plural } from "../../format.ts";
import type { CallItem } from "../../journal/view.ts";
import { Button } from "../../ui/button.tsx";
import { Scrollable } from "../../ui/parts.tsx";
import { Code, languageOfFile } from "../markdown/code.tsx";
import { Output } from "./output.tsx";
import { type CallProps, type Renderer, textArgument, verb } from "./renderer.ts";

const NUMBERED = /^ *\d+\t/;
const HIT = /^(.+?):(\d+): (.*)$/;

const path = (call: CallItem) => textArgument(call.args, "path");

export const readFile: Renderer = {
  icon: "file",
  name: (call) => verb(call, "Reading", "Read", "Read"),
  subject: path,
  Body: FileContent,
};

export const editFile: Renderer = {
  icon: "edit",
  name: (call) => verb(call, "Editing", "Edited", "Edit"),
  subject: path,
  outcome: (call) => (call.outcome === "ok" ? changeSummary(changes(call)) : ""),
  isOpen: (call) => call.outcome === "ok",
  Body: FileDiff,
};

export const writeFile: Renderer = {
  ...editFile,
  name: (call) => (call.result?.startsWith("Overwrote") ? "Overwrote" : verb(call, "Writing", "Wrote", "Write")),
  outcome: (call) => (call.outcome === "ok" ? plural(countChanges(changes(call)).added, "line") : ""),
  isOpen: () => false,
};

export const searchFiles: Renderer = {
  icon: "search",
  name: (call) => verb(call, "Searching files", "Searched files", "Search files"),
  subject: (call) => textArgument(call.args, "pattern"),
  Body: SearchHits,
};

function changeSummary(lines: readonly Line[]): string {
  const { added, removed } = countChanges(lines);
  return [added && `+${added}`, removed && `−${removed}`].filter(Boolean).join(" ");
}

/** The result has line numbers; the arguments have the complete text. */
function changes(call: CallItem): Line[] {
  const found = parseDiff(call.result ?? "");
  if (found.length) return found;
  return replacementDiff(
    textArgument(call.args, "old"),
    textArgument(call.args, "new") || textArgument(call.args, "content"),
  );
}

function FileDiff({ call }: CallProps) {
  return (
    <>
      <Difference lines={changes(call)} />
      {call.outcome === "error" && <Output text={call.result ?? ""} />}
    </>
  );
}

function FileContent({ call }: CallProps) {
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

function SearchHits({ call }: CallProps) {
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

const LINES_MAX = 40;
const SIGNS: Record<Line["kind"], string> = { same: " ", added: "+", removed: "−", place: "", note: "" };

/** Added and removed lines, with their numbers if known. */
function Difference({ lines }: { lines: readonly Line[] }) {
  const [isWhole, setWhole] = useState(false);
  const visible = isWhole ? lines : lines.slice(0, LINES_MAX);
  const isNumbered = lines.some((line) => line.after !== null || line.before !== null);
  return (
    <>
      <Scrollable class="difference" label="Difference">
        {visible.map((line, index) => (
          <div key={index} class={`change ${line.kind}`}>
            {isNumbered && <span class="change-number">{line.after ?? line.before ?? ""}</span>}
            <span class="change-sign">{SIGNS[line.kind]}</span>
            <span class="change-text">{line.text || " "}</span>
          </div>
        ))}
      </Scrollable>
      {visible.length < lines.length && (
        <Button small aria-expanded={false} onClick={() => setWhole(true)}>
          Show all {count(lines.length)} lines
        </Button>
      )}
    </>
  );
}

interface Line {
  kind: "same" | "added" | "removed" | "place" | "note";
  text: string;
  /** The line number before and after; null if the line does not exist there. */
  before: number | null;
  after: number | null;
}

const PLACE = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Return the lines of a unified diff, without its file names. */
export function parseDiff(diff: string): Line[] {
  const found: Line[] = [];
  let [before, after] = [0, 0];
  for (const line of diff.split("\n")) {
    const place = PLACE.exec(line);
    if (place) {
      [before, after] = [Number(place[1]), Number(place[2])];
      found.push({ kind: "place", text: line, before: null, after: null });
    } else if (found.length === 0) {
      // The file names come before the first hunk.
    } else if (line.startsWith("+")) found.push({ kind: "added", text: line.slice(1), before: null, after: after++ });
    else if (line.startsWith("-")) found.push({ kind: "removed", text: line.slice(1), before: before++, after: null });
    else if (line.startsWith(" ")) found.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
    else if (line) found.push({ kind: "note", text: line, before: null, after: null });
  }
  return found;
}

/** Return a diff of two texts whose position in the file is unknown. */
export function replacementDiff(oldText: string, newText: string): Line[] {
  const lines = (text: string) => (text ? text.replace(/\n$/, "").split("\n") : []);
  const [oldLines, newLines] = [lines(oldText), lines(newText)];
  const head = commonPrefix(oldLines, newLines);
  const tail = commonPrefix(oldLines.slice(head).reverse(), newLines.slice(head).reverse());
  const line = (kind: Line["kind"]) => (text: string) => ({ kind, text, before: null, after: null });
  return [
    ...oldLines.slice(0, head).map(line("same")),
    ...oldLines.slice(head, oldLines.length - tail).map(line("removed")),
    ...newLines.slice(head, newLines.length - tail).map(line("added")),
    ...oldLines.slice(oldLines.length - tail).map(line("same")),
  ];
}

/** Return how many lines two texts share at the start. */
function commonPrefix(one: readonly string[], other: readonly string[]): number {
  const end = one.findIndex((line, index) => line !== other[index]);
  return end < 0 ? Math.min(one.length, other.length) : end;
}

/** Return how many lines were added and removed. */
export function countChanges(lines: readonly Line[]): { added: number; removed: number } {
  const of = (kind: Line["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: of("added"), removed: of("removed") };
}
