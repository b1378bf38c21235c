/** Code blocks: language, copy button, and syntax highlighting that is loaded on demand. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../../format.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/parts.tsx";
import type { Piece } from "./grammars.ts";

/** A block that is longer is folded. */
const LINES_MAX = 400;

interface CodeProps {
  text: string;
  language: string;
  /** Not finished: it is coloured once it is. */
  growing?: boolean;
}

/** A block of code with its language, a way to copy it, and one to wrap its lines. */
export function Code({ text, language, growing = false }: CodeProps) {
  const [wraps, setWraps] = useState(false);
  // What was seen coming in is not folded the moment it is finished.
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

/** To colour more than this would hold up the page, and so would longer lines: some grammars look at each again and again. */
const HIGHLIGHTED_MAX_CHARS = 20_000;
const HIGHLIGHTED_LINE_MAX_CHARS = 500;
const highlighter = signal<Highlighter | null>(null);

/** Code, coloured as soon as its grammar is there; until then, and without one, it is plain. */
function Highlighted({ text, grammar }: { text: string; grammar: string | null }) {
  const wanted = grammar !== null && isHighlightable(text);
  useEffect(() => {
    if (wanted) fetchGrammars();
  }, [wanted]);
  const colour = wanted ? highlighter.value : null;
  const pieces = useMemo(() => (colour && grammar ? colour(grammar, text) : null), [colour, grammar, text]);
  return <>{pieces ? pieces.map(renderPiece) : text}</>;
}

/** Whether a text can be coloured in no time. */
export const isHighlightable = (text: string) =>
  text.length <= HIGHLIGHTED_MAX_CHARS && text.split("\n").every((line) => line.length <= HIGHLIGHTED_LINE_MAX_CHARS);

let asked = false;

function fetchGrammars(): void {
  if (asked) return;
  asked = true;
  import("./grammars.ts").then(
    (grammars) => {
      highlighter.value = grammars.highlighted;
    },
    // Without them code is plain; the next one asks again.
    () => {
      asked = false;
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

/** What people and models write, where it is not the name of the grammar or one of its own aliases. */
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
  /** Which grammar colours it; null where none is named. */
  grammar: string | null;
}

export function languageOf(info: string): Language {
  const name = /^[\w+#.-]+/.exec(info.trim())?.[0].toLowerCase() ?? "";
  if (!name) return { label: "Text", grammar: null };
  const label = LABELS.get(name) ?? name[0]!.toUpperCase() + name.slice(1);
  return { label, grammar: GRAMMARS.get(name) ?? name };
}

/** Return the language that a file is probably written in, by its name. */
export function languageOfFile(path: string): string {
  return /\.([\w+]+)$/.exec(path)?.[1] ?? "";
}
