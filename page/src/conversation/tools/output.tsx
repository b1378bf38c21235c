/** The output of a command, with the colours of a terminal. */

import { useMemo } from "preact/hooks";
import { LongText } from "../../ui/folding.tsx";
import { Scrollable } from "../../ui/parts.tsx";

interface OutputProps {
  text: string;
  end?: "head" | "tail";
  label?: string;
}

/** The output of a program. */
export function Output({ text, end = "head", label = "Output" }: OutputProps) {
  return (
    <LongText text={text} end={end}>
      {(visible) => (
        <Scrollable class="output" label={label}>
          <pre>
            <Ansi text={visible} />
          </pre>
        </Scrollable>
      )}
    </LongText>
  );
}

/** Terminal output with its colours. */
export function Ansi({ text }: { text: string }) {
  const found = useMemo(() => spans(withoutOverwritten(text)), [text]);
  return (
    <>
      {found.map((span, index) =>
        isPlain(span) ? (
          span.text
        ) : (
          <span key={index} class={classes(span)}>
            {span.text}
          </span>
        ),
      )}
    </>
  );
}

const isPlain = (style: Style) => (Object.keys(PLAIN) as (keyof Style)[]).every((name) => style[name] === PLAIN[name]);

function classes({ colour, bold, dim, italic, underline }: Style): string {
  return [
    colour && `ansi-${colour}`,
    bold && "ansi-bold",
    dim && "ansi-dim",
    italic && "ansi-italic",
    underline && "ansi-underline",
  ]
    .filter(Boolean)
    .join(" ");
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
type Colour = (typeof COLOURS)[number];

interface Style {
  colour: Colour | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

interface Span extends Style {
  text: string;
}

export const PLAIN: Style = { colour: null, bold: false, dim: false, italic: false, underline: false };
const ESCAPE = "\u001b";
const BELL = "\u0007";
/**
 * Control sequences, of which those ending in m set the style; operating system commands and strings; short sequences.
 */
const SEQUENCE = new RegExp(
  [
    `${ESCAPE}\\[([0-9;:?<=>]*)[ -/]*([@-~])`,
    `${ESCAPE}\\][^${BELL}${ESCAPE}]*(?:${BELL}|${ESCAPE}\\\\)?`,
    `${ESCAPE}[PX^_][^${ESCAPE}]*(?:${ESCAPE}\\\\)?`,
    `${ESCAPE}[ -/]*[0-~]`,
  ].join("|"),
  "g",
);
/** Characters that a terminal prints; of the control characters only tab and line breaks. */
const isPrintable = (character: string) => (character >= " " ? character !== "\u007f" : "\t\n\r".includes(character));

/** Return a text in spans of one style each. */
export function spans(text: string): Span[] {
  const found: Span[] = [];
  let style = PLAIN;
  let at = 0;
  const add = (piece: string) => {
    const printable = [...piece].every(isPrintable) ? piece : [...piece].filter(isPrintable).join("");
    if (printable) found.push({ ...style, text: printable });
  };
  for (const sequence of text.matchAll(SEQUENCE)) {
    add(text.slice(at, sequence.index));
    at = sequence.index + sequence[0].length;
    if (sequence[2] === "m") style = styleAfter(style, sequence[1] ?? "");
  }
  add(text.slice(at));
  return found;
}

/** Return lines as they look after carriage returns, which progress bars use to overwrite a line. */
export function withoutOverwritten(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1)!)
    .join("\n");
}

function styleAfter(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  let style = before;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(at + 1));
      if (code === 38) style = { ...style, colour };
      at += used;
    } else style = withCode(style, code);
  }
  return style;
}

/** Background colours are ignored: with a light and a dark theme they make text hard to read. */
function withCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code === 39) return { ...style, colour: null };
  const colour = COLOURS[code >= 90 ? code - 90 : code - 30];
  return colour && (code < 38 || code >= 90) ? { ...style, colour } : style;
}

/** Return the nearest of the eight colours to an extended colour, and how many codes it took. */
function extended(codes: readonly number[]): [Colour | null, number] {
  if (codes[0] === 5) return [indexed(codes[1] ?? 0), 2];
  if (codes[0] === 2) return [nearest(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0), 4];
  return [null, 0];
}

function indexed(index: number): Colour | null {
  if (index < 16) return COLOURS[index % 8]!;
  if (index >= 232) return null;
  const cube = index - 16;
  const level = (step: number) => (step % 6) * 51;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6)), level(cube));
}

/** Near-grey colours are left to the theme. */
function nearest(red: number, green: number, blue: number): Colour | null {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  if (most - least < 40) return null;
  const middle = (most + least) / 2;
  return COLOURS[Number(red > middle) + 2 * Number(green > middle) + 4 * Number(blue > middle)]!;
}
