/** Cuts streaming Markdown into sections that can be parsed alone, and closes what is still open at the end. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A fence within a list item is indented further. */
const FENCE_IN_LIST = /^\s*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}|~{3,})/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** Only a title may follow.  Anything else is text, and would be repeated with every section. */
const DEFINITION = /^ {0,3}\[[^[\]\n]+\]:[ \t]*[^\s<]\S*(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$/gm;

/** Return the sections of a text.  Joined, they give the text again. */
export function sections(text: string): string[] {
  const found: string[] = [];
  let begin = 0;
  for (const end of cuts(text)) {
    found.push(text.slice(begin, end));
    begin = end;
  }
  if (begin < text.length) found.push(text.slice(begin));
  return found;
}

/** Return the sections of a text that may have grown: only the end is cut again. */
export function regrown(before: readonly string[], text: string): string[] {
  // The first line of a section decides where it begins, and may still grow: "2" becomes "2) second".
  const isBegun = before.at(-1)?.includes("\n");
  const unchanged = before.slice(0, isBegun ? -1 : -2);
  const length = unchanged.reduce((sum, each) => sum + each.length, 0);
  let at = 0;
  for (const each of unchanged) {
    if (!text.startsWith(each, at)) return sections(text);
    at += each.length;
  }
  return [...unchanged, ...sections(text.slice(length))];
}

/** Return the link definitions of a text, which apply to all of its sections. */
export function definitions(text: string): string {
  return text.includes("]:") ? (text.match(DEFINITION) ?? []).join("\n") : "";
}

/** Yield where sections end: after a blank line outside of fences and lists. */
function* cuts(text: string): Generator<number> {
  let before = START;
  for (const { at, line } of lines(text)) {
    const isNext = !before.fence && before.isBlank && line.trim() !== "" && !/^\s/.test(line);
    const isCut = isNext && at > 0 && !(before.isListed && ITEM.test(line));
    if (isCut) yield at;
    before = stateAfter(isCut ? START : before, line);
  }
}

/** Return whether a section ends inside a fence. */
export function endsInFence(section: string): boolean {
  let state = START;
  for (const { line } of lines(section)) state = stateAfter(state, line);
  return state.fence !== "";
}

interface State {
  /** The open fence; empty if there is none. */
  fence: string;
  isBlank: boolean;
  isListed: boolean;
}

const START: State = { fence: "", isBlank: false, isListed: false };

function stateAfter(before: State, line: string): State {
  const isListed = before.isListed || (!before.fence && ITEM.test(line));
  return { fence: fenceAfter(before.fence, line, isListed), isBlank: line.trim() === "", isListed };
}

function fenceAfter(open: string, line: string, isListed: boolean): string {
  const found = (isListed ? FENCE_IN_LIST : FENCE).exec(line)?.[1];
  if (!found) return open;
  const rest = line.slice(line.indexOf(found) + found.length);
  // Backticks followed by backticks on the same line are inline code.
  if (!open) return found[0] === "`" && rest.includes("`") ? "" : found;
  const isClosing = found[0] === open[0] && found.length >= open.length && line.trim() === found;
  return isClosing ? "" : open;
}

function* lines(text: string): Generator<{ at: number; line: string }> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at);
    const next = end < 0 ? text.length : end + 1;
    yield { at, line: text.slice(at, next) };
    at = next;
  }
}

/** Longer marks first, because shorter ones are part of them. */
const MARKS = ["**", "__", "~~", "*", "_"] as const;
/** A mark that was opened further back stays open. */
const LOOK_BACK_MAX_CHARS = 2_000;
const HALF_LINK = /!?\[([^\]\n]*)(?:\]\([^)\n]*)?$/;
const HALF_CODE = /(?<!`)`([^`\n]*)$/;

/** Return a section with its open marks closed. */
export function closeOpenMarks(section: string): string {
  const at = Math.max(section.lastIndexOf("\n\n") + 1, section.length - LOOK_BACK_MAX_CHARS);
  const [head, tail] = [section.slice(0, at), section.slice(at)];
  const bare = withoutCode(tail);
  const code = HALF_CODE.exec(bare);
  if (code) return head + (code[1] ? `${tail}\`` : tail.slice(0, -1));
  const link = HALF_LINK.exec(bare);
  if (link) return head + withMarksClosed(tail.slice(0, link.index) + (link[0].startsWith("!") ? "" : link[1]!));
  return head + withMarksClosed(tail);
}

/** Return a text of the same length, with its inline code masked. */
function withoutCode(text: string): string {
  const runs = [...text.matchAll(/`+/g)];
  let closed = "";
  let at = 0;
  runs.forEach((run, index) => {
    if (run.index < at) return;
    const end = runs.find((other, place) => place > index && other[0].length === run[0].length);
    if (!end) return;
    const next = end.index + end[0].length;
    closed += text.slice(at, run.index) + "x".repeat(next - run.index);
    at = next;
  });
  return closed + text.slice(at);
}

function withMarksClosed(text: string): string {
  const bare = withoutCode(text);
  const open = MARKS.filter((mark) => isMarkOpen(bare, mark));
  // A mark at the very end has no content yet, and is left out.
  const closed = open.reduce((left, mark) => (left.endsWith(mark) ? left.slice(0, -mark.length) : left), text);
  if (closed !== text) return closed;
  const blank = /\s*$/.exec(text)![0];
  return text.slice(0, text.length - blank.length) + open.reverse().join("") + blank;
}

/** Return whether a mark is opened and not closed. */
function isMarkOpen(text: string, mark: string): boolean {
  const sign = mark[0] === "*" ? "\\*" : mark[0]!;
  const opening = `(?<![\\\\\\w${sign}])${sign}{${mark.length}}(?=[^\\s${sign}]|$)`;
  const closing = `(?<=[^\\s${sign}])${sign}{${mark.length}}(?!${sign})`;
  return (text.match(new RegExp(`${opening}|${closing}`, "g")) ?? []).length % 2 === 1;
}
