/** What two people, or a person and the agent, made of one document: who changed which line. */

const ID = /<!--\s*(mem_[0-9A-Za-z_-]+)\s*-->/;

export interface Difference {
  /** Lines that are there now, and were not. */
  come: string[];
  /** Lines that were there, and are not now. */
  gone: string[];
  /** Lines that both changed, each in their own way: as it is now, and as it is to be. */
  clashes: { theirs: string; mine: string }[];
}

/** Compare a document as it was read with what it is now and with what it is to be. */
export function difference(base: string, theirs: string, mine: string): Difference {
  const both = clashing(byId(base), byId(theirs), byId(mine));
  const others = (from: string, than: string) => {
    const there = new Set(lines(than));
    return lines(from).filter((line) => !there.has(line) && !both.includes(idOf(line) ?? ""));
  };
  return {
    come: others(theirs, base).map(shown),
    gone: others(base, theirs).map(shown),
    clashes: both.map((id) => ({ theirs: shown(byId(theirs).get(id)!), mine: shown(byId(mine).get(id)!) })),
  };
}

/** Return the memories that both changed, each in their own way. */
function clashing(base: Map<string, string>, theirs: Map<string, string>, mine: Map<string, string>): string[] {
  return [...base.keys()].filter((id) => {
    const [was, now, wanted] = [base.get(id), theirs.get(id), mine.get(id)];
    return now !== undefined && wanted !== undefined && now !== was && wanted !== was && now !== wanted;
  });
}

const idOf = (line: string) => ID.exec(line)?.[1];
const lines = (document: string) => document.split("\n").filter((line) => line.trim());

function byId(document: string): Map<string, string> {
  const named = lines(document).map((line) => [idOf(line), line] as const);
  return new Map(named.filter((each): each is [string, string] => each[0] !== undefined));
}

/** Return a line as people read it, without the comment that says which memory it is. */
const shown = (line: string) => line.replace(ID, "").replace(/^- /, "").trim();
