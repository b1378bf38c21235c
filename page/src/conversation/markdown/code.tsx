/** Code blocks: language, copy button, and syntax highlighting that is loaded on demand. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../../format.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/parts.tsx";
import type { Piece } from "./grammars.ts";

/** Longer blocks are folded. */
const LINES_MAX = 400;

interface CodeProps {
  text: string;
  language: string;
  /** It is still streaming; it is highlighted once it is complete. */
  growing?: boolean;
}

/** A code block with its language, a copy button and line wrapping. */
export function Code({ text, language, growing = false }: CodeProps) {
  const [wraps, setWraps] = useState(false);
  // A block that was seen streaming is not folded when it ends.
  const [isWhole, setWhole] = useState(growing);
  const lines = text.split("\n");
  const isCut = !isWhole && lines.length > LINES_MAX;
  const name = languageOf(language);
  return (
    <figure class={wraps ? "code wraps" : "code"}>
      <figcaption class="code-head">
        <span class="code-language">{name.label}</span>
        <IconButton
          icon="wrap"
          label={wraps ? "Do not wrap lines" : "Wrap lines"}
          aria-pressed={wraps}
          size={15}
          onClick={() => setWraps(!wraps)}
        />
        <CopyButton text={() => text} label="Copy the code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: What is wider than the column is scrolled, also with the keyboard. */}
      <pre tabIndex={0}>
        <code>
          <Highlighted
            text={isCut ? lines.slice(0, LINES_MAX).join("\n") : text}
            grammar={growing ? null : name.grammar}
          />
        </code>
      </pre>
      {isCut && (
        <Button small aria-expanded={false} onClick={() => setWhole(true)}>
          Show all {count(lines.length)} lines
        </Button>
      )}
    </figure>
  );
}

type Highlighter = (grammar: string, text: string) => Piece[] | null;

/** Longer texts or lines would block the page: some grammars scan a line repeatedly. */
const HIGHLIGHTED_MAX_CHARS = 20_000;
const HIGHLIGHTED_LINE_MAX_CHARS = 500;
const highlighter = signal<Highlighter | null>(null);

/** Code, highlighted once the grammars are loaded. */
function Highlighted({ text, grammar }: { text: string; grammar: string | null }) {
  const isWanted = grammar !== null && isHighlightable(text);
  useEffect(() => {
    if (isWanted) fetchGrammars();
  }, [isWanted]);
  const colour = isWanted ? highlighter.value : null;
  const pieces = useMemo(() => (colour && grammar ? colour(grammar, text) : null), [colour, grammar, text]);
  return <>{pieces ? pieces.map(renderPiece) : text}</>;
}

/** Whether highlighting the text is fast enough. */
export const isHighlightable = (text: string) =>
  text.length <= HIGHLIGHTED_MAX_CHARS && text.split("\n").every((line) => line.length <= HIGHLIGHTED_LINE_MAX_CHARS);

let isRequested = false;

function fetchGrammars(): void {
  if (isRequested) return;
  isRequested = true;
  import("./grammars.ts").then(
    (grammars) => {
      highlighter.value = grammars.highlighted;
    },
    // Code stays plain; the next block retries.
    () => {
      isRequested = false;
    },
  );
}

function renderPiece(piece: Piece, index: number) {
  if (typeof piece === "string") return piece;
  return (
    <span key={index} class={piece.classes}>
      {piece.pieces.map(renderPiece)}
    </span>
  );
}

/** Common names that are neither a grammar nor one of its aliases. */
const GRAMMARS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    console: "shell",
    dockerfile: "bash",
    jsonc: "json",
    json5: "json",
    jsx: "javascript",
    svelte: "xml",
    tsx: "typescript",
    vue: "xml",
    zsh: "bash",
  }),
);
const LABELS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    cpp: "C++",
    csharp: "C#",
    css: "CSS",
    go: "Go",
    html: "HTML",
    javascript: "JavaScript",
    js: "JavaScript",
    json: "JSON",
    md: "Markdown",
    php: "PHP",
    py: "Python",
    rb: "Ruby",
    rs: "Rust",
    sh: "Shell",
    sql: "SQL",
    toml: "TOML",
    ts: "TypeScript",
    tsx: "TSX",
    typescript: "TypeScript",
    xml: "XML",
    yaml: "YAML",
    yml: "YAML",
  }),
);

interface Language {
  label: string;
  /** The grammar; null if the fence names none. */
  grammar: string | null;
}

export function languageOf(info: string): Language {
  const name = /^[\w+#.-]+/.exec(info.trim())?.[0].toLowerCase() ?? "";
  if (!name) return { label: "Text", grammar: null };
  const label = LABELS.get(name) ?? name[0]!.toUpperCase() + name.slice(1);
  return { label, grammar: GRAMMARS.get(name) ?? name };
}

/** Return the probable language of a file, by its extension. */
export function languageOfFile(path: string): string {
  return /\.([\w+]+)$/.exec(path)?.[1] ?? "";
}
