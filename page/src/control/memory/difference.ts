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
  const before = new Set(lines(base));
  const now = new Set(lines(theirs));
  return {
    come: [...now].filter((line) => !before.has(line)).map(shown),
    gone: [...before].filter((line) => !now.has(line)).map(shown),
    clashes: clashes(byId(base), byId(theirs), byId(mine)),
  };
}

function clashes(base: Map<string, string>, theirs: Map<string, string>, mine: Map<string, string>) {
  const both = [...mine].filter(([id, line]) => base.has(id) && theirs.has(id) && line !== base.get(id));
  return both
    .filter(([id, line]) => theirs.get(id) !== base.get(id) && theirs.get(id) !== line)
    .map(([id, line]) => ({ theirs: shown(theirs.get(id)!), mine: shown(line) }));
}

const lines = (document: string) => document.split("\n").filter((line) => line.trim());

function byId(document: string): Map<string, string> {
  const named = lines(document).map((line) => [ID.exec(line)?.[1], line] as const);
  return new Map(named.filter((each): each is [string, string] => each[0] !== undefined));
}

/** Return a line as people read it, without the comment that says which memory it is. */
const shown = (line: string) => line.replace(ID, "").replace(/^- /, "").trim();
