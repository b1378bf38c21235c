import { Scrollable } from "../scrollable.tsx";
import { Ansi } from "./ansi.tsx";
import { Folded } from "./folded.tsx";

interface OutputProps {
  text: string;
  end?: "head" | "tail";
  label?: string;
}

/** Text as something printed it. */
export function Output({ text, end = "head", label = "Output" }: OutputProps) {
  return (
    <Folded text={text} end={end}>
      {(shown) => (
        <Scrollable class="output" label={label}>
          <pre>
            <Ansi text={shown} />
          </pre>
        </Scrollable>
      )}
    </Folded>
  );
}
