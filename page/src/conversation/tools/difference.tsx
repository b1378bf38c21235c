import { useState } from "preact/hooks";
import { count } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { Scrollable } from "../scrollable.tsx";
import type { Line } from "./changes.ts";

const LINES_MAX = 40;
const SIGNS: Record<Line["kind"], string> = { same: " ", added: "+", removed: "−", place: "", note: "" };

/** Lines that came and went, with their numbers where they are known. */
export function Difference({ lines }: { lines: readonly Line[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? lines : lines.slice(0, LINES_MAX);
  const isNumbered = lines.some((line) => line.after !== null || line.before !== null);
  return (
    <>
      <Scrollable class="difference" label="Difference">
        {shown.map((line, index) => (
          <div key={index} class={`change ${line.kind}`}>
            {isNumbered && <span class="change-number">{line.after ?? line.before ?? ""}</span>}
            <span class="change-sign">{SIGNS[line.kind]}</span>
            <span class="change-text">{line.text || " "}</span>
          </div>
        ))}
      </Scrollable>
      {shown.length < lines.length && (
        <Button small aria-expanded={false} onClick={() => setWhole(true)}>
          Show all {count(lines.length)} lines
        </Button>
      )}
    </>
  );
}
