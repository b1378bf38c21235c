import { useState } from "preact/hooks";
import { patch, post, remove } from "../../api.ts";
import { IconButton } from "../../ui/button.tsx";
import { attempt, tell } from "../../ui/toast.tsx";
import type { MemoryView, Removed } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { FactForm } from "./form.tsx";
import { Origin } from "./origin.tsx";

interface FactProps {
  memory: MemoryView;
  onChanged: () => void;
}

/** One thing that is remembered, to be read, changed in its place, or forgotten. */
export function Fact({ memory, onChanged }: FactProps) {
  const [doing, setDoing] = useState<"reading" | "editing" | "forgetting">("reading");
  const read = () => setDoing("reading");
  const change = async (text: string) => {
    await patch<MemoryView>(`/api/memory/${memory.id}`, { text });
    read();
    onChanged();
  };
  // What a profile was made of cannot be added again as a profile, so that there is no way back.
  const forgetting = () => (memory.kind === "profile" ? setDoing("forgetting") : forget(memory, onChanged));
  if (doing === "editing") {
    return (
      <FactForm label="Change what is remembered" text={memory.text} verb="Save" onSave={change} onCancel={read} />
    );
  }
  return (
    <div>
      <p class="memory-text">{memory.text}</p>
      <div class="memory-more">
        <Origin memory={memory} />
        <span class="memory-actions">
          <IconButton icon="edit" label="Edit" size={16} onClick={() => setDoing("editing")} />
          <IconButton icon="trash" label="Forget" size={16} onClick={forgetting} />
        </span>
      </div>
      {doing === "forgetting" && (
        <Confirm title="Forget the profile?" action="Forget" onConfirm={() => erase(memory, onChanged)} onClose={read}>
          It is written anew from what is said from now on. This cannot be undone.
        </Confirm>
      )}
    </div>
  );
}

async function forget(memory: MemoryView, onChanged: () => void): Promise<void> {
  const done = await attempt(() => erase(memory, onChanged));
  if (done) tell("Forgotten.", { action: { label: "Undo", run: () => recover(memory, onChanged) } });
}

async function erase(memory: MemoryView, onChanged: () => void): Promise<Removed> {
  const done = await remove<Removed>(`/api/memory/${memory.id}`);
  onChanged();
  return done;
}

async function recover(memory: MemoryView, onChanged: () => void): Promise<void> {
  await attempt(() => post<MemoryView>("/api/memory", { text: memory.text }));
  onChanged();
}
