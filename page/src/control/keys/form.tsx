import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDoing } from "../../ui/doing.ts";
import { TextField } from "../../ui/text_field.tsx";
import type { KeyView, NewKey } from "../../wire.ts";
import { Trouble } from "../parts/trouble.tsx";
import { useClosed } from "./closed.ts";
import { isFirst } from "./opening.ts";
import { EMPTY, isMissing, type May, planned, type Written } from "./plan.ts";

const MAY: readonly { value: May; label: string; meaning: string }[] = [
  { value: "api", label: "Use the API", meaning: "talk, read, and everything that belongs to its owner" },
  { value: "admin", label: "Administer", meaning: "everything, also consent, keys, settings and stopping the gateway" },
  { value: "webhook", label: "Hand in deliveries", meaning: "to one webhook route, and nothing else" },
];

interface KeyFormProps {
  keys: readonly KeyView[];
  onMade: (key: NewKey) => void;
  onClose: () => void;
}

/** A key to be made. */
export function KeyForm({ keys, onMade, onClose }: KeyFormProps) {
  const [form, setForm] = useState(EMPTY);
  const doing = useDoing();
  const closed = useClosed();
  const plan = planned(form);
  const set = (change: Partial<Written>) => setForm({ ...form, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    doing.run(async () => onMade(await post<NewKey>("/api/keys", plan)));
  };
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="key-form" onSubmit={submit}>
        <Name value={form.name} set={set} />
        <Choices may={form.may} onChoose={(may) => set({ may })} />
        {form.may === "webhook" && <Route value={form.route} set={set} />}
        {form.may === "api" && <Owner value={form.owner} set={set} />}
        <Rate value={form.rate} set={set} />
        {isFirst(keys, plan.scopes) && !closed && <First />}
        {doing.problem.value !== undefined && <Trouble error={doing.problem.value} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={doing.busy.value || isMissing(form)}>
            Make the key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface PartProps {
  value: string;
  set: (change: Partial<Written>) => void;
}

function Name({ value, set }: PartProps) {
  return (
    <TextField
      label="Name"
      hint="What will use it, so that you know it again."
      required
      maxLength={100}
      placeholder="laptop"
      value={value}
      onInput={(name) => set({ name })}
    />
  );
}

function Route({ value, set }: PartProps) {
  const hint = "The name of the webhook route.";
  return <TextField label="Route" hint={hint} value={value} onInput={(route) => set({ route })} />;
}

function Owner({ value, set }: PartProps) {
  return (
    <TextField
      label="Owner (optional)"
      hint="Somebody else than you: conversations, memories and jobs of this key are theirs, and yours do not exist for it."
      value={value}
      onInput={(owner) => set({ owner })}
    />
  );
}

function Rate({ value, set }: PartProps) {
  return (
    <TextField
      label="Requests per minute (optional)"
      hint="Without a number it may ask as often as it likes."
      inputMode="numeric"
      pattern="\d*"
      title="a whole number"
      value={value}
      onInput={(rate) => set({ rate })}
    />
  );
}

function First() {
  return (
    <p class="consequence" role="note">
      <strong>This is the first key.</strong> As soon as it is made, every program needs one, on this machine too. This
      browser stays signed in.
    </p>
  );
}

function Choices({ may, onChoose }: { may: May; onChoose: (may: May) => void }) {
  return (
    <fieldset class="key-choices">
      <legend>What it may do</legend>
      {MAY.map(({ value, label, meaning }) => (
        <label key={value} class="key-choice">
          <input type="radio" name="may" checked={value === may} onChange={() => onChoose(value)} />
          <span>
            <strong>{label}</strong>: {meaning}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
