/** All memories as one Markdown document, with a draft that survives a change of page. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, put } from "../../api.ts";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { newAction } from "../../ui/requests.ts";
import { showToast } from "../../ui/toast.tsx";
import type { Document, Edited } from "../../wire.ts";
import { ErrorNotice, Pending, useUnsavedWarning } from "../parts.tsx";

export function DocumentEditor() {
  useEffect(() => {
    loadDocument();
  }, []);
  useUnsavedWarning(isChanged.value);
  if (savedText.value !== null) return <Editor base={savedText.value} />;
  return <Pending error={problem.value} onRetry={loadDocument} lines={8} />;
}

function Editor({ base }: { base: string }) {
  const idle = !isChanged.value || busy.value;
  const saveEdits = async (anyway: boolean) => {
    const edited = await saveDocument(anyway);
    if (edited) showToast(summary(edited));
  };
  return (
    <section class="memory-stack" aria-label="Document">
      <p class="faint">
        Change, add or delete lines. Keep the comment at the end of each line: it identifies the memory. What is learned
        while you edit stays.
      </p>
      <textarea
        class="memory-document input"
        aria-label="Memories as Markdown"
        spellcheck={false}
        value={editedText.value}
        onInput={(event) => {
          editedText.value = event.currentTarget.value;
        }}
      />
      {problem.value !== undefined && <ErrorNotice error={problem.value} />}
      {newerText.value !== null && (
        <Conflict
          base={base}
          theirs={newerText.value}
          mine={editedText.value}
          onSave={() => saveEdits(true)}
          onDiscard={() => startEditing(newerText.value!)}
        />
      )}
      <div class="memory-row">
        <Button look="main" disabled={idle} onClick={() => saveEdits(false)}>
          Save
        </Button>
        <Button disabled={idle} onClick={() => startEditing(base)}>
          Discard changes
        </Button>
      </div>
    </section>
  );
}

function summary({ added, changed, removed, known, left_out }: Edited): string {
  const counts = [
    [added, "added"],
    [changed, "changed"],
    [removed, "forgotten"],
    [known, "already known"],
    [left_out, "left out, because memory is full"],
  ] as const;
  const changes = counts.filter(([amount]) => amount);
  if (!changes.length) return "No changes.";
  return `${changes.map(([amount, what]) => `${plural(amount, "memory", "memories")} ${what}`).join(", ")}.`;
}

interface ConflictProps {
  base: string;
  theirs: string;
  mine: string;
  onSave: () => void;
  onDiscard: () => void;
}

/** What others changed while the document was edited, and how to resolve it. */
function Conflict({ base, theirs, mine, onSave, onDiscard }: ConflictProps) {
  const { added, removed, clashes } = difference(base, theirs, mine);
  const element = useRef<HTMLElement>(null);
  useEffect(() => element.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section ref={element} class="memory-conflict" role="alert" aria-label="The document has changed">
      <h2>The document has changed while you were editing</h2>
      <Lines title="Added" lines={added} sign="+" />
      <Lines title="Removed" lines={removed} sign="−" />
      {clashes.map(({ theirs, mine }) => (
        <div key={mine}>
          <p>The same line was changed twice. Saving keeps yours.</p>
          <p class="memory-line gone">− {theirs}</p>
          <p class="memory-line come">+ {mine}</p>
        </div>
      ))}
      <div class="memory-row">
        <Button look="main" onClick={onSave}>
          Save mine too
        </Button>
        <Button onClick={onDiscard}>Discard mine</Button>
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

const PATH = "/api/memory/document";

const savedState = signal<string | null>(null);
const newerState = signal<string | null>(null);
const action = newAction();

/** The document as it was loaded; null until then. */
const savedText: ReadonlySignal<string | null> = savedState;
/** The document as it is edited. */
const editedText = signal("");
/** The document as it is now, if it changed since it was loaded. */
const newerText: ReadonlySignal<string | null> = newerState;
export const { problem, busy } = action;
const isChanged = computed(() => savedState.value !== null && editedText.value !== savedState.value);

/** Start editing a document; earlier edits are dropped. */
function startEditing(markdown: string): void {
  savedState.value = editedText.value = markdown;
  newerState.value = null;
  action.clearProblem();
}

/** Load the document, unless it has unsaved changes. */
async function loadDocument(): Promise<void> {
  if (!isChanged.value) await action.run(async () => startEditing((await get<Document>(PATH)).markdown));
}

/** Save the edits.  Changes of others are shown first, unless `anyway` is set. */
async function saveDocument(anyway: boolean): Promise<Edited | undefined> {
  return action.run(async () => {
    const now = (await get<Document>(PATH)).markdown;
    if (!anyway && now !== savedState.value) {
      newerState.value = now;
      return undefined;
    }
    const edited = await put<Edited>(PATH, { base: savedState.value, markdown: editedText.value });
    startEditing(edited.markdown);
    return edited;
  });
}

const ID = /<!--\s*(mem_[0-9A-Za-z_-]+)\s*-->/;

interface Difference {
  /** Lines that others added. */
  added: string[];
  /** Lines that others removed. */
  removed: string[];
  /** Lines that both changed differently. */
  clashes: { theirs: string; mine: string }[];
}

/** Compare the loaded document with the current one and the edited one. */
export function difference(base: string, theirs: string, mine: string): Difference {
  const both = conflictingIds(byId(base), byId(theirs), byId(mine));
  const others = (from: string, than: string) => {
    const existing = new Set(lines(than));
    return lines(from).filter((line) => !existing.has(line) && !both.includes(idOf(line) ?? ""));
  };
  return {
    added: others(theirs, base).map(withoutId),
    removed: others(base, theirs).map(withoutId),
    clashes: both.map((id) => ({ theirs: withoutId(byId(theirs).get(id)!), mine: withoutId(byId(mine).get(id)!) })),
  };
}

/** Return the ids of memories that both changed differently. */
function conflictingIds(base: Map<string, string>, theirs: Map<string, string>, mine: Map<string, string>): string[] {
  return [...base.keys()].filter((id) => {
    const [was, now, wanted] = [base.get(id), theirs.get(id), mine.get(id)];
    return now !== undefined && wanted !== undefined && now !== was && wanted !== was && now !== wanted;
  });
}

const idOf = (line: string) => ID.exec(line)?.[1];
const lines = (document: string) => document.split("\n").filter((line) => line.trim());

function byId(document: string): Map<string, string> {
  const named = lines(document).map((line) => [idOf(line), line] as const);
  return new Map(named.filter((each): each is [string, string] => each[0] !== undefined));
}

/** Return a line for people, without the comment that holds its id. */
const withoutId = (line: string) => line.replace(ID, "").replace(/^- /, "").trim();
