import { useState } from "preact/hooks";
import { count } from "../../format.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/parts.tsx";
import { Highlighted } from "./highlighted.tsx";
import { languageOf } from "./languages.ts";

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
