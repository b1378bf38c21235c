/** Text that a person approves: no character in it may hide, or make it look like another text. */

import { Scrollable } from "../ui/parts.tsx";

/** Text to approve, complete and literal: no terminal colours, no overwriting, no folding. */
export function ExactText({ text, label }: { text: string; label: string }) {
  return (
    <Scrollable class="output" label={label}>
      <pre>
        {withHiddenMarked(text).map((piece, index) =>
          piece.isHidden ? (
            <span key={index} class="hidden-character" title="An invisible character">
              {piece.text}
            </span>
          ) : (
            piece.text
          ),
        )}
      </pre>
    </Scrollable>
  );
}

/**
 * Characters that are invisible or change how others look: control, format and separator characters, and unassigned
 * ones.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
const SHOWN = new Set(["\n", "\t"]);

interface Piece {
  text: string;
  /** It stands for an invisible character. */
  isHidden: boolean;
}

/** Return a text in pieces, with each invisible character replaced by its code point. */
export function withHiddenMarked(text: string): Piece[] {
  const found: Piece[] = [];
  let visible = "";
  for (const character of text) {
    if (SHOWN.has(character) || !HIDDEN.test(character)) visible += character;
    else {
      if (visible) found.push({ text: visible, isHidden: false });
      visible = "";
      found.push({ text: numbered(character), isHidden: true });
    }
  }
  return visible ? [...found, { text: visible, isHidden: false }] : found;
}

/** Return a text with its invisible characters spelled out, for places that take plain text only. */
export const legibleText = (text: string) =>
  withHiddenMarked(text)
    .map((piece) => (piece.isHidden ? `‹${piece.text}›` : piece.text))
    .join("");

const numbered = (character: string) => `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
