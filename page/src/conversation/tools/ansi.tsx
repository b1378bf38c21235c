import { useMemo } from "preact/hooks";
import { type Look, PLAIN, settled, spans } from "./escapes.ts";

/** What a terminal printed, with its colours. */
export function Ansi({ text }: { text: string }) {
  const found = useMemo(() => spans(settled(text)), [text]);
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

const isPlain = (look: Look) => (Object.keys(PLAIN) as (keyof Look)[]).every((name) => look[name] === PLAIN[name]);

function classes({ colour, bold, dim, italic, underline }: Look): string {
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
