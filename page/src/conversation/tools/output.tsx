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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: What is wider than the column is scrolled, also with the keyboard.
        <section class="output" tabIndex={0} aria-label={label}>
          <pre>
            <Ansi text={shown} />
          </pre>
        </section>
      )}
    </Folded>
  );
}
