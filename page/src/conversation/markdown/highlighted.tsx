import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Piece } from "./grammars.ts";

type Colouring = (grammar: string, text: string) => Piece[] | null;

/** To colour more than this would hold up the page, and so would longer lines: some grammars look at each again and again. */
const COLOURED_MAX_CHARS = 20_000;
const COLOURED_LINE_MAX_CHARS = 500;
const colouring = signal<Colouring | null>(null);

/** Code, coloured as soon as its grammar is there; until then, and without one, it is plain. */
export function Highlighted({ text, grammar }: { text: string; grammar: string | null }) {
  const wanted = grammar !== null && isColoured(text);
  useEffect(() => {
    if (wanted) fetchGrammars();
  }, [wanted]);
  const colour = wanted ? colouring.value : null;
  const pieces = useMemo(() => (colour && grammar ? colour(grammar, text) : null), [colour, grammar, text]);
  return <>{pieces ? pieces.map(drawn) : text}</>;
}

/** Whether a text can be coloured in no time. */
export const isColoured = (text: string) =>
  text.length <= COLOURED_MAX_CHARS && text.split("\n").every((line) => line.length <= COLOURED_LINE_MAX_CHARS);

let asked = false;

function fetchGrammars(): void {
  if (asked) return;
  asked = true;
  import("./grammars.ts").then(
    (grammars) => {
      colouring.value = grammars.coloured;
    },
    // Without them code is plain; the next one asks again.
    () => {
      asked = false;
    },
  );
}

function drawn(piece: Piece, index: number) {
  if (typeof piece === "string") return piece;
  return (
    <span key={index} class={piece.classes}>
      {piece.pieces.map(drawn)}
    </span>
  );
}
