/** Content that folds: a line that opens to show the rest, and long text of which a part is shown. */

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { count } from "../format.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface DisclosureProps {
  class: string;
  isOpen: boolean;
  onTurn: (isOpen: boolean) => void;
  /** The line that is always visible. */
  head: ComponentChildren;
  children: ComponentChildren;
}

/** A line that opens to show the rest. */
export function Disclosure({ class: name, isOpen, onTurn, head, children }: DisclosureProps) {
  const id = useId();
  return (
    <div class={name}>
      <button
        type="button"
        class="unfolds"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => onTurn(!isOpen)}
      >
        {head}
        <span class={isOpen ? "chevron open" : "chevron"}>
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {isOpen && (
        <div class="unfolded" id={id}>
          {children}
        </div>
      )}
    </div>
  );
}

const LINES_MAX = 24;
/** A text with few lines may still have a very long one. */
const CHARS_MAX = 6_000;

interface LongTextProps {
  text: string;
  /** Which end stays visible. */
  end?: "head" | "tail";
  children: (visible: string) => ComponentChildren;
}

/** Long text, cut until the rest is asked for. */
export function LongText({ text, end = "head", children }: LongTextProps) {
  const [isWhole, setWhole] = useState(false);
  const lines = text.split("\n");
  const isLong = lines.length > LINES_MAX * 1.5 || text.length > CHARS_MAX * 1.5;
  if (!isLong) return <>{children(text)}</>;
  return (
    <>
      {children(isWhole ? text : excerpt(lines, end))}
      <Button small aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? "Show less" : `Show all ${count(lines.length)} lines`}
      </Button>
    </>
  );
}

function excerpt(lines: readonly string[], end: "head" | "tail"): string {
  const visible = (end === "head" ? lines.slice(0, LINES_MAX) : lines.slice(-LINES_MAX)).join("\n");
  return end === "head" ? visible.slice(0, CHARS_MAX) : visible.slice(-CHARS_MAX);
}
