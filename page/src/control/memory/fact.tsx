/** One memory: shown, edited in place, or forgotten. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorText, patch, post, remove } from "../../api.ts";
import { to } from "../../router.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, Time } from "../../ui/parts.tsx";
import { attempt, showToast } from "../../ui/toast.tsx";
import type { MemoryView, Removed } from "../../wire.ts";
import { Confirm } from "../parts.tsx";

interface FactProps {
  memory: MemoryView;
  onChanged: () => void;
}

/** One memory: shown, edited in place, or forgotten. */
export function Fact({ memory, onChanged }: FactProps) {
  const [action, setDoing] = useState<"reading" | "editing" | "forgetting">("reading");
  const read = () => setDoing("reading");
  const change = async (text: string) => {
    await patch<MemoryView>(`/api/memory/${memory.id}`, { text });
    read();
    onChanged();
  };
  // A profile cannot be added again, so forgetting it has no undo.
  const forgetting = () => (memory.kind === "profile" ? setDoing("forgetting") : forget(memory, onChanged));
  if (action === "editing") {
    return <FactForm label="Edit memory" text={memory.text} verb="Save" onSave={change} onCancel={read} />;
  }
  return (
    <div>
      <p class="memory-text">{memory.text}</p>
      <div class="memory-more">
        <MemoryOrigin memory={memory} />
        <span class="memory-actions">
          <IconButton icon="edit" label="Edit" size={16} onClick={() => setDoing("editing")} />
          <IconButton icon="trash" label="Forget" size={16} onClick={forgetting} />
        </span>
      </div>
      {action === "forgetting" && (
        <Confirm title="Forget the profile?" action="Forget" onConfirm={() => erase(memory, onChanged)} onClose={read}>
          It will be rebuilt from new conversations. This cannot be undone.
        </Confirm>
      )}
    </div>
  );
}

async function forget(memory: MemoryView, onChanged: () => void): Promise<void> {
  const done = await attempt(() => erase(memory, onChanged));
  if (done) showToast("Forgotten.", { action: { label: "Undo", run: () => recover(memory, onChanged) } });
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

interface FactFormProps {
  label: string;
  text: string;
  verb: string;
  hint?: string;
  /** Throws what is wrong with the text, which is shown beside it. */
  onSave: (text: string) => Promise<void>;
  onCancel: () => void;
}

/** A form for one memory.  Enter saves it, Escape cancels. */
export function FactForm({ label, text, verb, hint, onSave, onCancel }: FactFormProps) {
  const [edited, setEdited] = useState(text);
  const [problem, setProblem] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => area.current?.focus(), []);
  const save = (event: Event) => {
    event.preventDefault();
    if (!edited.trim()) return;
    onSave(edited).catch((error) => setProblem(errorText(error)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save(event);
  };
  return (
    <form class="memory-form" onSubmit={save}>
      <Field label={label} hint={hint} problem={problem || undefined}>
        {(control) => (
          <textarea
            {...control}
            ref={area}
            rows={2}
            value={edited}
            onInput={(event) => setEdited(event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
        )}
      </Field>
      <div class="memory-row">
        <Button type="submit" look="main" small disabled={!edited.trim()}>
          {verb}
        </Button>
        <Button small onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

/** Where a memory was said. */
function MemoryOrigin({ memory }: { memory: MemoryView }) {
  const { origin, turn_id } = memory;
  if (origin) {
    return (
      <span class="said-in">
        <a href={to.session(origin.session_id, turn_id ?? null)}>{origin.title || origin.key}</a>, message{" "}
        {origin.ordinal}, <Time at={origin.at} />
      </span>
    );
  }
  return (
    <span class="said-in">
      {turn_id ? "From a deleted conversation" : "Added manually"}, <Time at={memory.updated_at} />
    </span>
  );
}
