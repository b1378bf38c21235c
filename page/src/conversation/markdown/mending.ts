/** While words come in, the last ones may be half of something: it is shown as what it is going to be. */

/** From the rarest to what the others are made of. */
const MARKS = ["**", "__", "~~", "*", "_"] as const;
const HALF_LINK = /!?\[([^\]\n]*)(?:\]\([^)\n]*)?$/;
const HALF_CODE = /(?<!`)`([^`\n]*)$/;
const WHOLE_CODE = /(`+)[\s\S]*?(?<!`)\1(?!`)/g;

/** Return a section with what is open at its end closed. */
export function mended(section: string): string {
  const at = section.lastIndexOf("\n\n") + 1;
  const [head, tail] = [section.slice(0, at), section.slice(at)];
  const bare = tail.replace(WHOLE_CODE, (code) => "x".repeat(code.length));
  const code = HALF_CODE.exec(bare);
  if (code) return head + (code[1] ? `${tail}\`` : tail.slice(0, -1));
  const link = HALF_LINK.exec(bare);
  if (link) return head + closed(tail.slice(0, link.index) + (link[0].startsWith("!") ? "" : link[1]!));
  return head + closed(tail);
}

function closed(text: string): string {
  const bare = text.replace(WHOLE_CODE, "");
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
  const runs = new RegExp(
    `(?<![\\\\\\w${sign}])${sign}{${mark.length}}(?=[^\\s${sign}]|$)|(?<=[^\\s${sign}])${sign}{${mark.length}}(?!${sign})`,
    "g",
  );
  return (text.match(runs) ?? []).length % 2 === 1;
}
