import { exactly } from "../legible.ts";
import { Scrollable } from "../scrollable.tsx";

/** Text that is consented to, all of it and as it is: no colours of a terminal, nothing written over, nothing folded. */
export function Exact({ text, label }: { text: string; label: string }) {
  return (
    <Scrollable class="output" label={label}>
      <pre>
        {exactly(text).map((piece, index) =>
          piece.isHidden ? (
            <span key={index} class="hidden-character" title="A character that would not be seen">
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
