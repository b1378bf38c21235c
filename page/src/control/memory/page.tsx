/** Memory: what is remembered, as a list and as one document, and how it was learned. */

import "./memory.css";
import { computed } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import { post, query } from "../../api.ts";
import { plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Empty, Problem } from "../../ui/parts.tsx";
import { useDebounced, useLoaded } from "../../ui/requests.ts";
import { attempt, showToast } from "../../ui/toast.tsx";
import type { Forgotten, MemoryView, RecallResult } from "../../wire.ts";
import { type List, Listing, useList } from "../list.tsx";
import { PageHead, TextField } from "../parts.tsx";
import { DocumentEditor } from "./document.tsx";
import { Fact, FactForm } from "./fact.tsx";
import { Receipts } from "./receipts.tsx";

const VIEWS = [
  { id: null, label: "Facts" },
  { id: "document", label: "Document" },
  { id: "receipts", label: "Learning" },
] as const;

export function MemoryPage({ id }: { id: string | null }) {
  return (
    <>
      <PageHead title="Memory" lead="What the agent remembers across conversations, and where it was said." />
      <nav class="views" aria-label="Views of memory">
        {VIEWS.map((view) => (
          <a key={view.label} href={to.control("memory", view.id)} aria-current={view.id === id ? "page" : undefined}>
            {view.label}
          </a>
        ))}
      </nav>
      {id === "document" ? <DocumentEditor /> : id === "receipts" ? <Receipts /> : <Facts />}
    </>
  );
}

const POLL_MS = 10_000;

function Facts() {
  const [typed, setTyped] = useState("");
  const [adding, setAdding] = useState(false);
  const searched = useDebounced(typed.trim());
  const list = useLastItems(useList<MemoryView>(`/api/memory${query({ q: searched })}`, POLL_MS));
  const add = async (text: string) => {
    await post<MemoryView>("/api/memory", { text });
    setAdding(false);
    showToast("Remembered.");
    list.refresh();
  };
  return (
    <section class="memories" aria-label="Memories">
      <div class="memory-tools">
        <input
          class="input"
          type="search"
          placeholder="Search memories"
          aria-label="Search memories"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Button look="main" icon="plus" onClick={() => setAdding(true)}>
          Add
        </Button>
      </div>
      {adding && (
        <FactForm label="What to remember" text="" verb="Remember" onSave={add} onCancel={() => setAdding(false)} />
      )}
      <Listing list={list} empty={<Nothing searched={searched} />}>
        {(memories) => <MemoryList memories={memories} onChanged={list.refresh} />}
      </Listing>
      {searched && <Recalled searched={searched} />}
      {!searched && Boolean(list.listed.value.items?.length) && <ForgetEverything onForgotten={list.refresh} />}
    </section>
  );
}

function MemoryList({ memories, onChanged }: { memories: readonly MemoryView[]; onChanged: () => void }) {
  const profile = memories.filter((each) => each.kind === "profile");
  const facts = memories.filter((each) => each.kind !== "profile");
  return (
    <>
      {profile.map((memory) => (
        <section key={memory.id} class="memory-profile" aria-label="Profile">
          <h2>Profile</h2>
          <Fact memory={memory} onChanged={onChanged} />
        </section>
      ))}
      <ul class="memories-list">
        {facts.map((memory) => (
          <li key={memory.id}>
            <Fact memory={memory} onChanged={onChanged} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Nothing({ searched }: { searched: string }) {
  if (searched)
    return (
      <Empty icon="search" title="No results">
        No memory contains all of these words.
      </Empty>
    );
  return (
    <Empty icon="brain" title="No memories yet">
      The agent learns from a conversation when it ends or has been quiet for a while. You can also add facts yourself,
      or say “remember that …” in a chat.
    </Empty>
  );
}

/** Keep the last results until the next search has answered, so that nothing flickers. */
function useLastItems<T>(list: List<T>): List<T> {
  const last = useRef<readonly T[] | undefined>(undefined);
  return useMemo(() => {
    const listed = computed(() => {
      const now = list.listed.value;
      if (now.items) last.current = now.items;
      return { ...now, items: now.items ?? last.current };
    });
    return { ...list, listed };
  }, [list]);
}

/** What an external memory provider finds, if there is one: it may know more than the gateway. */
function Recalled({ searched }: { searched: string }) {
  const [loaded] = useLoaded<RecallResult>(`/api/memory/recall${query({ q: searched })}`);
  const recalled = loaded.value.value;
  if (!recalled?.provider) return null;
  return (
    <section class="memory-recalled" aria-label={`Found by ${recalled.provider}`}>
      <h2>Found by {recalled.provider}</h2>
      {recalled.problem && <Problem error={recalled.problem} />}
      {!recalled.problem && !recalled.items?.length && <p class="faint">No results.</p>}
      <ul class="memories-list">
        {recalled.items?.map((each) => (
          <li key={each.id ?? each.text} class="memory-text">
            {each.text}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Typed as confirmation, because this cannot be undone. */
const WORD = "forget everything";

function ForgetEverything({ onForgotten }: { onForgotten: () => void }) {
  const [asking, setAsking] = useState(false);
  return (
    <div class="memory-last">
      <Button look="bad" icon="trash" small onClick={() => setAsking(true)}>
        Forget everything…
      </Button>
      {asking && <ForgetDialog onClose={() => setAsking(false)} onForgotten={onForgotten} />}
    </div>
  );
}

function ForgetDialog({ onClose, onForgotten }: { onClose: () => void; onForgotten: () => void }) {
  const [typed, setTyped] = useState("");
  const sure = typed.trim().toLowerCase() === WORD;
  const forget = async (event: Event) => {
    event.preventDefault();
    const done = sure && (await attempt(() => post<Forgotten>("/api/memory/forget", { everything: true })));
    if (!done) return;
    onClose();
    onForgotten();
    report(done);
  };
  return (
    <Dialog title="Forget everything?" onClose={onClose}>
      <form class="memory-stack" onSubmit={forget}>
        <p>
          All facts and the profile are deleted, here and at the memory provider. Conversations stay. This cannot be
          undone.
        </p>
        <TextField label={`Type “${WORD}”`} value={typed} onInput={setTyped} />
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="bad" disabled={!sure}>
            Forget everything
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function report({ forgotten, elsewhere = 0, owed = 0, problems = [] }: Forgotten): void {
  const more = elsewhere ? `, and ${plural(elsewhere, "memory", "memories")} elsewhere` : "";
  showToast(`${plural(forgotten, "memory", "memories")} forgotten${more}.`);
  if (owed) showToast(`${plural(owed, "conversation part")} will still be learned from; see Learning.`);
  for (const each of problems) showToast(each, { bad: true });
}
