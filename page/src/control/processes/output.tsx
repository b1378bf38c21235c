import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Ansi } from "../../conversation/tools/ansi.tsx";
import { Button } from "../../ui/button.tsx";
import { kept } from "../../ui/kept.tsx";
import { CopyButton } from "../../ui/parts.tsx";
import { whileVisible } from "../../ui/visible.ts";
import type { ProcessView } from "../../wire.ts";
import { Section } from "../parts/section.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { type Log, logOf, textOf } from "./log.ts";
import "../../conversation/tools/tools.css";

const LOOK_MS = 1_000;
/** So close to the end counts as being there. */
const NEAR_PX = 24;

/** What a command writes, as it writes it.  Paused, it stands still, and nothing is missed. */
export function LiveOutput({ process }: { process: ProcessView }) {
  const { log, readOn } = useMemo(() => logOf(process.id), [process.id]);
  const [paused, setPaused] = useState(false);
  const running = process.state === "running";
  useEffect(() => {
    if (!running) readOn();
    else if (!paused) return whileVisible(readOn, LOOK_MS);
  }, [readOn, running, paused]);
  return (
    <Section title="Output" aside={<Actions {...{ log: log.value, running, paused, setPaused }} />}>
      {log.value.error !== undefined && <Trouble error={log.value.error} onRetry={readOn} />}
      {log.value.cut && <p class="faint">What it wrote before is not shown here any more.</p>}
      <Terminal log={log.value} running={running} />
    </Section>
  );
}

interface ActionsProps {
  log: Log;
  running: boolean;
  paused: boolean;
  setPaused: (paused: boolean) => void;
}

function Actions({ log, running, paused, setPaused }: ActionsProps) {
  return (
    <div class="page-actions">
      {running && (
        <Button small icon={paused ? "play" : "pause"} aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? "Go on" : "Pause"}
        </Button>
      )}
      <CopyButton text={() => textOf(log)} label="Copy the output" />
    </div>
  );
}

const Lines = kept(Ansi);

function Terminal({ log, running }: { log: Log; running: boolean }) {
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // Whoever has scrolled up reads, and is left in peace.
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const note = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: It is scrolled with the keyboard.
    <section class="process-output" ref={box} tabIndex={0} aria-label="What the command wrote" onScroll={note}>
      <pre>
        {log.blocks.map((block) => (
          <Lines key={block.number} text={block.text} />
        ))}
      </pre>
      {log.read && log.blocks.length === 0 && (
        <p class="faint">{running ? "It has not written anything yet." : "It wrote nothing."}</p>
      )}
    </section>
  );
}
