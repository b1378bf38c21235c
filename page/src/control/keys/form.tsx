import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/parts.tsx";
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
  const [problem, setProblem] = useState<unknown>();
  const closed = useClosed();
  const scopes = [may === "webhook" ? `${WEBHOOK}${route.trim()}` : may === "admin" ? ADMIN : API];
  const make = async (event: Event) => {
    event.preventDefault();
    const plan: KeyPlan = {
      name: name.trim(),
      scopes,
      owner: may === "api" && owner.trim() ? owner.trim() : OPERATOR,
      rate_limit: Number(rate) || 0,
    };
    try {
      onMade(await post<NewKey>("/api/keys", plan));
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="key-form" onSubmit={make}>
        <Field label="Name" hint="What will use it, so that you know it again.">
          {(control) => (
            <input
              {...control}
              required
              maxLength={100}
              autocomplete="off"
              placeholder="laptop"
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <Choices may={may} onChoose={setMay} />
        {may === "webhook" && (
          <Text label="Route" hint="The name of the webhook route." value={route} onInput={setRoute} />
        )}
        {may === "api" && (
          <Text
            label="Owner (optional)"
            hint="Somebody else than you: conversations, memories and jobs of this key are theirs, and yours do not exist for it."
            value={owner}
            onInput={setOwner}
          />
        )}
        <Field label="Requests per minute (optional)" hint="Without a number it may ask as often as it likes.">
          {(control) => (
            <input
              {...control}
              type="number"
              min={0}
              value={rate}
              onInput={(event) => setRate(event.currentTarget.value)}
            />
          )}
        </Field>
        {isFirst(keys, scopes) && !closed && <First />}
        {problem !== undefined && <Trouble error={problem} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={!name.trim() || (may === "webhook" && !route.trim())}>
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

interface TextProps {
  label: string;
  hint: string;
  value: string;
  onInput: (value: string) => void;
}

function Text({ label, hint, value, onInput }: TextProps) {
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
