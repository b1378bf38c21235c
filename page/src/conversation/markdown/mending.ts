/** While words come in, the last ones may be half of something: it is shown as what it is going to be. */

/** From the rarest to what the others are made of. */
const MARKS = ["**", "__", "~~", "*", "_"] as const;
/** What was opened further back than this is left open until it is closed. */
const LOOK_BACK_MAX_CHARS = 2_000;
const HALF_LINK = /!?\[([^\]\n]*)(?:\]\([^)\n]*)?$/;
const HALF_CODE = /(?<!`)`([^`\n]*)$/;

/** Return a section with what is open at its end closed. */
export function mended(section: string): string {
  const at = Math.max(section.lastIndexOf("\n\n") + 1, section.length - LOOK_BACK_MAX_CHARS);
  const [head, tail] = [section.slice(0, at), section.slice(at)];
  const bare = withoutCode(tail);
  const code = HALF_CODE.exec(bare);
  if (code) return head + (code[1] ? `${tail}\`` : tail.slice(0, -1));
  const link = HALF_LINK.exec(bare);
  if (link) return head + closed(tail.slice(0, link.index) + (link[0].startsWith("!") ? "" : link[1]!));
  return head + closed(tail);
}

/** Return a text with all that is code in it made unrecognisable, and as long as before. */
function withoutCode(text: string): string {
  const runs = [...text.matchAll(/`+/g)];
  let shown = "";
  let at = 0;
  runs.forEach((run, index) => {
    if (run.index < at) return;
    const end = runs.find((other, place) => place > index && other[0].length === run[0].length);
    if (!end) return;
    const next = end.index + end[0].length;
    shown += text.slice(at, run.index) + "x".repeat(next - run.index);
    at = next;
  });
  return shown + text.slice(at);
}

function closed(text: string): string {
  const bare = withoutCode(text);
  const open = MARKS.filter((mark) => isOpen(bare, mark));
  // What has only just been opened has nothing in it yet.
  const shown = open.reduce((left, mark) => (left.endsWith(mark) ? left.slice(0, -mark.length) : left), text);
  if (shown !== text) return shown;
  const blank = /\s*$/.exec(text)![0];
  return text.slice(0, text.length - blank.length) + open.reverse().join("") + blank;
}

/** Return whether a mark stands where it opens, and does not stand again. */
function isOpen(text: string, mark: string): boolean {
  const sign = mark[0] === "*" ? "\\*" : mark[0]!;
  const opening = `(?<![\\\\\\w${sign}])${sign}{${mark.length}}(?=[^\\s${sign}]|$)`;
  const closing = `(?<=[^\\s${sign}])${sign}{${mark.length}}(?!${sign})`;
  return (text.match(new RegExp(`${opening}|${closing}`, "g")) ?? []).length % 2 === 1;
}
