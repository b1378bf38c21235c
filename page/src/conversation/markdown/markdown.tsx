import { useRef, useState } from "preact/hooks";
import { bytes } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { kept } from "../../ui/kept.tsx";
import { read } from "./lexer.ts";
import "./markdown.css";
import { mended } from "./mending.ts";
import { Blocks } from "./nodes.tsx";
import { definitions, grown, isOpen, sections } from "./sections.ts";

/** So much is drawn at once; what is longer is drawn on request. */
const SHOWN_MAX_CHARS = 60_000;
/** What was drawn as it came stays, up to the longest answers that there are. */
const GROWN_MAX_CHARS = 300_000;

interface MarkdownProps {
  text: string;
  /** More words may come, so what is open at the end is only half of something. */
  growing?: boolean;
}

/** Markdown as nodes.  Sections that are finished stay as they are while the text grows. */
export function Markdown({ text, growing = false }: MarkdownProps) {
  const [most, setMost] = useState(SHOWN_MAX_CHARS);
  // What was seen coming in stays whole: it has been drawn piece by piece.
  const isWhole = useRef(growing);
  isWhole.current ||= growing;
  const plain = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  const limit = isWhole.current ? Math.max(most, GROWN_MAX_CHARS) : most;
  const shown = plain.length > limit ? plain.slice(0, limit) : plain;
  const before = useRef<readonly string[]>([]);
  before.current = before.current.length ? grown(before.current, shown) : sections(shown);
  const defined = definitions(shown);
  const last = before.current.length - 1;
  return (
    <div class="markdown" dir="auto">
      {before.current.map((section, index) => (
        <Section key={index} text={section} defined={defined} growing={growing && index === last} />
      ))}
      {shown.length < plain.length && (
        <p class="markdown-more">
          <Button small aria-expanded={false} onClick={() => setMost(limit * 2)}>
            Show more ({bytes(plain.length - shown.length)} left)
          </Button>
        </p>
      )}
    </div>
  );
}

interface SectionProps {
  text: string;
  defined: string;
  growing: boolean;
}

const Section = kept(({ text, defined, growing }: SectionProps) => {
  const isHalf = growing && isOpen(text);
  const source = growing && !isHalf ? mended(text) : text;
  const tokens = read(defined ? `${source}\n\n${defined}` : source);
  return tokens ? <Blocks tokens={tokens} growing={isHalf} /> : <p class="markdown-plain">{text}</p>;
});
