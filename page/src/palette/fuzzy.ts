/** Fuzzy matching: finds a name by some of its letters, in their order. */

/** Letters that follow each other or begin a word count more. */
const ADJACENT = 4;
const WORD_START = 6;
const PLAIN = 1;
const WHOLE = 2;

interface Match {
  score: number;
  /** The positions of the letters in the name. */
  at: readonly number[];
}

/** Match letters with a name; null if the name does not contain them in this order. */
export function match(letters: string, name: string): Match | null {
  const pattern = letters.toLowerCase().replace(/\s+/g, "");
  const text = name.toLowerCase();
  const exactAt = pattern ? text.indexOf(letters.toLowerCase().trim()) : -1;
  if (exactAt >= 0) return matchExactly(letters.trim().length, exactAt, text);
  const at: number[] = [];
  let from = 0;
  for (const letter of pattern) {
    const found = next(text, letter, from);
    if (found < 0) return null;
    at.push(found);
    from = found + letter.length;
  }
  return { score: score(at, text), at };
}

function matchExactly(length: number, begin: number, text: string): Match {
  const at = Array.from({ length }, (_, index) => begin + index);
  // Prefer shorter names.
  return { score: score(at, text) + WHOLE + 1 / text.length, at };
}

/** Prefer a letter at the start of a word. */
function next(text: string, letter: string, from: number): number {
  for (let at = text.indexOf(letter, from); at >= 0; at = text.indexOf(letter, at + 1)) {
    if (at === from || isStart(text, at)) return at;
  }
  return text.indexOf(letter, from);
}

function score(at: readonly number[], text: string): number {
  return at.reduce((sum, position, index) => {
    if (isStart(text, position)) return sum + WORD_START;
    return sum + (position === (at[index - 1] ?? -2) + 1 ? ADJACENT : PLAIN);
  }, 0);
}

const isStart = (text: string, at: number) => at === 0 || /[\s\-_/:.“(]/.test(text[at - 1]!);
