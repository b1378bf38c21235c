/** Character references in Markdown, as far as people and models write them. */

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

/** Return a text with its references replaced by what they stand for; what nobody knows stays as it is. */
export function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name) return NAMED.get(name) ?? whole;
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex!, 16);
    return code > 0 && code <= LAST_CHARACTER ? String.fromCodePoint(code) : "\ufffd";
  });
}
