/** The output of a background command, read on as it is written. */

import "../../conversation/tools/tools.css";
import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../../api.ts";
import { Ansi } from "../../conversation/tools/output.tsx";
import { Button } from "../../ui/button.tsx";
import { CopyButton, memo } from "../../ui/parts.tsx";
import { whileVisible } from "../../ui/requests.ts";
import type { Output, ProcessView } from "../../wire.ts";
import { ErrorNotice, Section } from "../parts.tsx";

const POLL_MS = 1_000;
/** Scrolled this close to the end counts as at the end. */
const NEAR_PX = 24;

/** The live output of a command.  Paused, it stands still, and continues without gaps. */
export function LiveOutput({ process }: { process: ProcessView }) {
  const { log, readOn } = useMemo(() => logOf(process.id), [process.id]);
  const [paused, setPaused] = useState(false);
  const running = process.state === "running";
  useEffect(() => {
    if (!running) readOn();
    else if (!paused) return whileVisible(readOn, POLL_MS);
  }, [readOn, running, paused]);
  return (
    <Section title="Output" aside={<Actions {...{ log: log.value, running, paused, setPaused }} />}>
      {log.value.error !== undefined && <ErrorNotice error={log.value.error} onRetry={readOn} />}
      {log.value.cut && <p class="faint">Earlier output is not shown.</p>}
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
          {paused ? "Resume" : "Pause"}
        </Button>
      )}
      <CopyButton text={() => textOf(log)} label="Copy the output" />
    </div>
  );
}

const Lines = memo(Ansi);

function Terminal({ log, running }: { log: Log; running: boolean }) {
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // A person who has scrolled up keeps their position.
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const note = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: It is scrolled with the keyboard.
    <section class="process-output" ref={box} tabIndex={0} aria-label="Output of the command" onScroll={note}>
      <pre>
        {log.blocks.map((block) => (
          <Lines key={block.number} text={block.text} />
        ))}
      </pre>
      {log.read && log.blocks.length === 0 && <p class="faint">{running ? "No output yet." : "No output."}</p>}
    </section>
  );
}

/** The most characters that the page keeps; the gateway has all of them. */
const CHARS_MAX = 128_000;
/** Lines are drawn in blocks of about this many characters, so that new ones do not redraw the others. */
const BLOCK = 8_000;
/** A line without an end is cut here; progress bars write such lines. */
const BLOCK_MAX = 32_000;
/** At most this many pieces per poll; a faster command is read on at the next poll. */
const PIECES_MAX = 16;

interface Block {
  number: number;
  text: string;
}

interface Log {
  /** Whole lines, except for very long ones and at the end. */
  blocks: readonly Block[];
  /** Output before the first block is not shown. */
  cut: boolean;
  end: number;
  read: boolean;
  error: unknown;
}

export const emptyLog: Log = { blocks: [], cut: false, end: 0, read: false, error: undefined };

export const textOf = (log: Log) => log.blocks.map(({ text }) => text).join("");

/** Return a log with one more piece; full blocks stay the same objects. */
export function append(log: Log, output: Output): Log {
  const last = log.blocks.at(-1);
  const grown = blocksOf((last?.text ?? "") + output.text, last?.number ?? 0);
  const blocks = [...log.blocks.slice(0, -1), ...grown];
  const dropped = surplusBlocks(blocks);
  const cut = log.cut || output.begin > log.end || dropped > 0;
  return { blocks: blocks.slice(dropped), cut, end: output.end, read: true, error: undefined };
}

function blocksOf(text: string, first: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < text.length) {
    const lineEnd = text.indexOf("\n", at + BLOCK);
    const next = Math.min(lineEnd < 0 ? text.length : lineEnd + 1, at + BLOCK_MAX);
    blocks.push({ number: first + blocks.length, text: text.slice(at, next) });
    at = next;
  }
  return blocks;
}

/** Return how many blocks at the beginning are too many. */
function surplusBlocks(blocks: readonly Block[]): number {
  let total = 0;
  const last = blocks.findLastIndex(({ text }) => {
    total += text.length;
    return total > CHARS_MAX;
  });
  return last + 1;
}

/** Return the log of a command, and the function that reads on. */
function logOf(processId: string): { log: ReadonlySignal<Log>; readOn: () => Promise<void> } {
  const log = signal(emptyLog);
  let reading = false;
  const readOn = async () => {
    if (reading) return;
    reading = true;
    log.value = await readPieces(processId, log.peek());
    reading = false;
  };
  return { log, readOn };
}

async function readPieces(processId: string, before: Log): Promise<Log> {
  const path = `/api/processes/${encodeURIComponent(processId)}/log?colours=true&after=`;
  let log = before;
  try {
    for (let piece = 0; piece < PIECES_MAX; piece++) {
      const output = await get<Output>(`${path}${log.end}`);
      const isAll = output.end === log.end;
      if (!isAll || !log.read || log.error !== undefined) log = append(log, output);
      if (isAll) break;
    }
    return log;
  } catch (error) {
    return { ...log, error };
  }
}
