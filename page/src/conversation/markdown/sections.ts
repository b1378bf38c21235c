/** Cuts Markdown into sections that mean the same alone as together, so that what is finished is never read again. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** What belongs to an item of a list is further to the right. */
const FENCE_IN_LIST = /^\s*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}|~{3,})/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** Only a title may follow: anything else is words, a footnote or a line of code, and would be shown with every section. */
const DEFINITION = /^ {0,3}\[[^[\]\n]+\]:[ \t]*[^\s<]\S*(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$/gm;

/** Return the sections of a text.  Joined, they are the text again. */
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

/** Return the sections of a text that may have grown: only the end is looked at again. */
export function grown(before: readonly string[], text: string): string[] {
  // A section begins where its first line says so, and that line may still grow: "2" becomes "2) second".
  const isBegun = before.at(-1)?.includes("\n");
  const kept = before.slice(0, isBegun ? -1 : -2);
  const length = kept.reduce((sum, each) => sum + each.length, 0);
  let at = 0;
  for (const each of kept) {
    if (!text.startsWith(each, at)) return sections(text);
    at += each.length;
  }
  return [...kept, ...sections(text.slice(length))];
}

/** Return the definitions of links in a text, which hold for all of its sections. */
export function definitions(text: string): string {
  return text.includes("]:") ? (text.match(DEFINITION) ?? []).join("\n") : "";
}

/** Say where the sections end: behind a blank line that no fence is around and no list goes on after. */
function* cuts(text: string): Generator<number> {
  let before = START;
  for (const { at, line } of lines(text)) {
    const isNext = !before.fence && before.isBlank && line.trim() !== "" && !/^\s/.test(line);
    const isCut = isNext && at > 0 && !(before.isListed && ITEM.test(line));
    if (isCut) yield at;
    before = after(isCut ? START : before, line);
  }
}

/** Return whether a section ends inside a fence. */
export function isOpen(section: string): boolean {
  let state = START;
  for (const { line } of lines(section)) state = after(state, line);
  return state.fence !== "";
}

interface State {
  /** The fence that is open. */
  fence: string;
  isBlank: boolean;
  isListed: boolean;
}

const START: State = { fence: "", isBlank: false, isListed: false };

function after(before: State, line: string): State {
  const isListed = before.isListed || (!before.fence && ITEM.test(line));
  return { fence: fenceAfter(before.fence, line, isListed), isBlank: line.trim() === "", isListed };
}

function fenceAfter(open: string, line: string, isListed: boolean): string {
  const found = (isListed ? FENCE_IN_LIST : FENCE).exec(line)?.[1];
  if (!found) return open;
  const rest = line.slice(line.indexOf(found) + found.length);
  // Backticks with backticks behind them are code within a line.
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
