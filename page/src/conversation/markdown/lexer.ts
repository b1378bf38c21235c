/** Reading Markdown into tokens. */

import { Lexer, type Token, type Tokens } from "marked";

/** What is read as one piece, unless it is code. */
const MOST_CHARS = 30_000;
/** To find out what so many signs belong to would hold up the page. */
const MOST_SIGNS = 2_000;
/** Nobody reads what is nested more deeply, and no browser can draw it. */
const DEEPEST = 40;
const SIGNS = /[*_~`[<>]/g;
const FENCE = /^\n* {0,3}(`{3,}|~{3,})[^`\n]*\n/;

/** Return the tokens of a text; null where it is too long or too tangled to be read, and is shown as it is. */
export function read(text: string): Token[] | null {
  if ((text.length > MOST_CHARS || isTangled(text)) && !isCode(text)) return null;
  try {
    const tokens = new Lexer({ gfm: true }).lex(text);
    return isDeeper(tokens, DEEPEST) ? null : tokens;
  } catch {
    // It is nested more deeply than the lexer can go.
    return null;
  }
}

const isTangled = (text: string) => text.length > MOST_SIGNS && (text.match(SIGNS)?.length ?? 0) > MOST_SIGNS;

/** Return whether tokens stand within each other more often than that. */
function isDeeper(tokens: readonly Token[], most: number): boolean {
  return (
    tokens.length > 0 && (most === 0 || tokens.some((token) => isDeeper(within(token as Tokens.Generic), most - 1)))
  );
}

const within = (token: Tokens.Generic): readonly Token[] => token.items ?? token.tokens ?? [];

/** Return whether a fence is around all of it. */
function isCode(text: string): boolean {
  const [opening, fence] = FENCE.exec(text) ?? [];
  if (!opening || !fence) return false;
  const rest = text.slice(opening.length);
  const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, "m").exec(rest);
  return !closing || rest.slice(closing.index + closing[0].length).trim() === "";
}
