/** Facts and the profile: found, added, changed and forgotten one by one. */

import { computed } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import { post, query } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/parts.tsx";
import { useSettled } from "../../ui/settled.ts";
import { tell } from "../../ui/toast.tsx";
import type { MemoryView } from "../../wire.ts";
import { type List, useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Fact } from "./fact.tsx";
import { ForgetEverything } from "./forget.tsx";
import { FactForm } from "./form.tsx";
import { Recalled } from "./recalled.tsx";

const REFRESHED_MS = 10_000;

export function Facts() {
  const [asked, setAsked] = useState("");
  const [adding, setAdding] = useState(false);
  const wanted = useSettled(asked.trim());
  const list = useLasting(useList<MemoryView>(`/api/memory${query({ q: wanted })}`, REFRESHED_MS));
  const add = async (text: string) => {
    await post<MemoryView>("/api/memory", { text });
    setAdding(false);
    tell("Remembered.");
    list.refresh();
  };
  return (
    <section class="memories" aria-label="What is remembered">
      <div class="memory-tools">
        <input
          class="input"
          type="search"
          placeholder="Search memories"
          aria-label="Search memories"
          value={asked}
          onInput={(event) => setAsked(event.currentTarget.value)}
        />
        <Button look="main" icon="plus" onClick={() => setAdding(true)}>
          Add
        </Button>
      </div>
      {adding && (
        <FactForm label="What to remember" text="" verb="Remember" onSave={add} onCancel={() => setAdding(false)} />
      )}
      <Listing list={list} empty={<Nothing wanted={wanted} />}>
        {(memories) => <Remembered memories={memories} onChanged={list.refresh} />}
      </Listing>
      {wanted && <Recalled wanted={wanted} />}
      {!wanted && Boolean(list.listed.value.items?.length) && <ForgetEverything onForgotten={list.refresh} />}
    </section>
  );
}

function Remembered({ memories, onChanged }: { memories: readonly MemoryView[]; onChanged: () => void }) {
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

function Nothing({ wanted }: { wanted: string }) {
  if (wanted)
    return (
      <Empty icon="search" title="Nothing found">
        Nothing here has all of these words.
      </Empty>
    );
  return (
    <Empty icon="brain" title="Nothing is remembered yet">
      What matters of a conversation is remembered when it is over, or after a while of silence. You can add facts
      yourself, or say “remember that …” while you chat.
    </Empty>
  );
}

/** Let what another search found stay until this one has found something, so that nothing flickers. */
function useLasting<T>(list: List<T>): List<T> {
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
