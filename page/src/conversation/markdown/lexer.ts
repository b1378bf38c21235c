/** Reading Markdown into tokens. */

import { Lexer, type Token } from "marked";

/** Return the tokens of a text; null where it is nested so deeply that it cannot be read. */
export function read(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return null;
  }
}
