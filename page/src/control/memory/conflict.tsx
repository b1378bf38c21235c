import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { difference } from "./difference.ts";

interface ConflictProps {
  base: string;
  theirs: string;
  mine: string;
  onSave: () => void;
  onDiscard: () => void;
}

/** What was learned, changed or forgotten while somebody edited the document, and what to do about it. */
export function Conflict({ base, theirs, mine, onSave, onDiscard }: ConflictProps) {
  const { come, gone, clashes } = difference(base, theirs, mine);
  const element = useRef<HTMLElement>(null);
  useEffect(() => element.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section ref={element} class="memory-conflict" role="alert" aria-label="It has changed meanwhile">
      <h2>It has changed while you were writing</h2>
      <Lines title="There now" lines={come} sign="+" />
      <Lines title="Not there any more" lines={gone} sign="−" />
      {clashes.map(({ theirs, mine }) => (
        <div key={mine}>
          <p>You both changed one line. Saving makes it yours.</p>
          <p class="memory-line gone">− {theirs}</p>
          <p class="memory-line come">+ {mine}</p>
        </div>
      ))}
      <div class="memory-row">
        <Button look="main" onClick={onSave}>
          Save mine as well
        </Button>
        <Button onClick={onDiscard}>Discard mine, and show how it is now</Button>
      </div>
    </section>
  );
}

function Lines({ title, lines, sign }: { title: string; lines: readonly string[]; sign: "+" | "−" }) {
  if (!lines.length) return null;
  return (
    <div>
      <h3>{title}</h3>
      {lines.map((line) => (
        <p key={line} class={sign === "+" ? "memory-line come" : "memory-line gone"}>
          {sign} {line}
        </p>
      ))}
    </div>
  );
}
