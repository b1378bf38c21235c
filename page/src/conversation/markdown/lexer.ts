/** Parses Markdown into tokens, and decides where links and pictures may lead. */

import { Lexer, type Token, type Tokens } from "marked";

/** The longest text that is parsed at once, unless it is code. */
const PARSED_MAX_CHARS = 30_000;
/** Parsing more marks than this would block the page. */
const MARKS_MAX = 2_000;
/** Deeper nesting is unreadable, and browsers cannot draw it. */
const NESTING_MAX = 40;
const MARKS = /[*_~`[<>]/g;
const FENCE = /^\n* {0,3}(`{3,}|~{3,})[^`\n]*\n/;

/** Return the tokens of a text; null if it is too long or too complex, and is shown as plain text. */
export function parseMarkdown(text: string): Token[] | null {
  if ((text.length > PARSED_MAX_CHARS || hasTooManyMarks(text)) && !isCode(text)) return null;
  try {
    const tokens = new Lexer({ gfm: true }).lex(text);
    return isDeeper(tokens, NESTING_MAX) ? null : tokens;
  } catch {
    // It is nested more deeply than the lexer can recurse.
    return null;
  }
}

const hasTooManyMarks = (text: string) => text.length > MARKS_MAX && (text.match(MARKS)?.length ?? 0) > MARKS_MAX;

/** Return whether tokens are nested more deeply than `most`. */
function isDeeper(tokens: readonly Token[], most: number): boolean {
  return (
    tokens.length > 0 &&
    (most === 0 || tokens.some((token) => isDeeper(childTokens(token as Tokens.Generic), most - 1)))
  );
}

const childTokens = (token: Tokens.Generic): readonly Token[] => token.items ?? token.tokens ?? [];

/** Return whether the whole text is one fenced block. */
function isCode(text: string): boolean {
  const [opening, fence] = FENCE.exec(text) ?? [];
  if (!opening || !fence) return false;
  const rest = text.slice(opening.length);
  const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, "m").exec(rest);
  return !closing || rest.slice(closing.index + closing[0].length).trim() === "";
}

const NAMED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: "&",
    apos: "'",
    bull: "•",
    cent: "¢",
    copy: "©",
    deg: "°",
    euro: "€",
    ge: "≥",
    gt: ">",
    hellip: "…",
    larr: "←",
    laquo: "«",
    ldquo: "“",
    le: "≤",
    lsquo: "‘",
    lt: "<",
    mdash: "—",
    middot: "·",
    nbsp: "\u00a0",
    ndash: "–",
    ne: "≠",
    para: "¶",
    plusmn: "±",
    pound: "£",
    quot: '"',
    raquo: "»",
    rarr: "→",
    rdquo: "”",
    reg: "®",
    rsquo: "’",
    sect: "§",
    times: "×",
    trade: "™",
  }),
);
const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;
const LAST_CHARACTER = 0x10ffff;

/** Return a text with its character references decoded; unknown ones stay. */
export function decodeReferences(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name) return NAMED.get(name) ?? whole;
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex!, 16);
    return code > 0 && code <= LAST_CHARACTER ? String.fromCodePoint(code) : "\ufffd";
  });
}

const LINK_SCHEMES = new Set(["http:", "https:", "mailto:"]);
const INLINE_PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-zA-Z0-9+/=\s]+$/;
/** Only pictures of the gateway: other paths may be private, or stream forever. */
const GATEWAY_PICTURE = /^\/api\/turns\/[\w-]+\/images\/\d+$/;

/** Return the target of a link; null if its scheme is not allowed. */
export function linkTarget(href: string): string | null {
  try {
    const url = new URL(href);
    return LINK_SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Return the source of a picture that can be shown; null if it would be fetched from a third party. */
export function pictureSource(href: string): string | null {
  return INLINE_PICTURE.test(href) || GATEWAY_PICTURE.test(href) ? href : null;
}
