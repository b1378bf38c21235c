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
  const keep = async (anyway: boolean) => {
    const edited = await saveDocument(anyway);
    if (edited) showToast(summary(edited));
  };
  return (
    <section class="memory-stack" aria-label="Document">
      <p class="faint">
        Change, add or delete lines. The comment behind a line says which memory it is: keep the two together. What is
        learned while you write stays.
      </p>
      <textarea
        class="memory-document input"
        aria-label="What is remembered, as Markdown"
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
          onSave={() => keep(true)}
          onDiscard={() => startEditing(newerText.value!)}
        />
      )}
      <div class="memory-row">
        <Button look="main" disabled={idle} onClick={() => keep(false)}>
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
    [known, "known already"],
    [left_out, "left out, as there is no room for more"],
  ] as const;
  const said = counts.filter(([amount]) => amount);
  if (!said.length) return "Nothing was changed.";
  return `${said.map(([amount, what]) => `${plural(amount, "memory", "memories")} ${what}`).join(", ")}.`;
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
  come: string[];
  /** Lines that others removed. */
  gone: string[];
  /** Lines that both changed differently. */
  clashes: { theirs: string; mine: string }[];
}

/** Compare the loaded document with the current one and the edited one. */
export function difference(base: string, theirs: string, mine: string): Difference {
  const both = clashing(byId(base), byId(theirs), byId(mine));
  const others = (from: string, than: string) => {
    const there = new Set(lines(than));
    return lines(from).filter((line) => !there.has(line) && !both.includes(idOf(line) ?? ""));
  };
  return {
    come: others(theirs, base).map(shown),
    gone: others(base, theirs).map(shown),
    clashes: both.map((id) => ({ theirs: shown(byId(theirs).get(id)!), mine: shown(byId(mine).get(id)!) })),
  };
}

/** Return the ids of memories that both changed differently. */
function clashing(base: Map<string, string>, theirs: Map<string, string>, mine: Map<string, string>): string[] {
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
const shown = (line: string) => line.replace(ID, "").replace(/^- /, "").trim();
