import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDoing } from "../../ui/doing.ts";
import { TextField } from "../../ui/text_field.tsx";
import type { KeyPlan, KeyView, NewKey } from "../../wire.ts";
import { Trouble } from "../parts/trouble.tsx";
import { useClosed } from "./closed.ts";
import { ADMIN, API, isFirst, OPERATOR, WEBHOOK } from "./opening.ts";

type May = "api" | "admin" | "webhook";
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
  const [name, setName] = useState("");
  const [may, setMay] = useState<May>("api");
  const [route, setRoute] = useState("");
  const [owner, setOwner] = useState("");
  const [rate, setRate] = useState("");
  const doing = useDoing();
  const closed = useClosed();
  const scopes = [may === "webhook" ? `${WEBHOOK}${route.trim()}` : may === "admin" ? ADMIN : API];
  const make = async () => {
    const plan: KeyPlan = {
      name: name.trim(),
      scopes,
      owner: may === "api" && owner.trim() ? owner.trim() : OPERATOR,
      rate_limit: Number(rate) || 0,
    };
    onMade(await post<NewKey>("/api/keys", plan));
  };
  const submit = (event: Event) => {
    event.preventDefault();
    doing.run(make);
  };
  const isMissing = !name.trim() || (may === "webhook" && !route.trim());
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="key-form" onSubmit={submit}>
        <TextField
          label="Name"
          hint="What will use it, so that you know it again."
          required
          maxLength={100}
          placeholder="laptop"
          value={name}
          onInput={setName}
        />
        <Choices may={may} onChoose={setMay} />
        {may === "webhook" && (
          <TextField label="Route" hint="The name of the webhook route." value={route} onInput={setRoute} />
        )}
        {may === "api" && (
          <TextField
            label="Owner (optional)"
            hint="Somebody else than you: conversations, memories and jobs of this key are theirs, and yours do not exist for it."
            value={owner}
            onInput={setOwner}
          />
        )}
        <TextField
          label="Requests per minute (optional)"
          hint="Without a number it may ask as often as it likes."
          inputMode="numeric"
          pattern="\d*"
          title="a whole number"
          value={rate}
          onInput={setRate}
        />
        {isFirst(keys, scopes) && !closed && <First />}
        {doing.problem.value !== undefined && <Trouble error={doing.problem.value} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={doing.busy.value || isMissing}>
            Make the key
          </Button>
        </div>
      </form>
    </Dialog>
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
