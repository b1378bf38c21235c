/** The form for a new key, and what keys mean for access to the API. */

import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useAction, useLoaded } from "../../ui/requests.ts";
import type { KeyPlan, KeyView, NewKey, SettingsView } from "../../wire.ts";
import { ErrorNotice, TextField } from "../parts.tsx";

const PERMISSIONS: readonly { value: Permission; label: string; meaning: string }[] = [
  { value: "api", label: "Use the API", meaning: "chat, read, and manage everything of its owner" },
  {
    value: "admin",
    label: "Administer",
    meaning: "everything, including approvals, keys, settings and stopping the gateway",
  },
  { value: "webhook", label: "Send webhooks", meaning: "to one webhook route, and nothing else" },
];

interface KeyFormProps {
  keys: readonly KeyView[];
  onMade: (key: NewKey) => void;
  onClose: () => void;
}

/** The form for a new key. */
export function KeyForm({ keys, onMade, onClose }: KeyFormProps) {
  const [form, setForm] = useState(EMPTY);
  const action = useAction();
  const closed = useConfiguredAccess();
  const plan = keyPlan(form);
  const set = (change: Partial<KeyFields>) => setForm({ ...form, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run(async () => onMade(await post<NewKey>("/api/keys", plan)));
  };
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="key-form" onSubmit={submit}>
        <Name value={form.name} set={set} />
        <Choices may={form.may} onChoose={(may) => set({ may })} />
        {form.may === "webhook" && <Route value={form.route} set={set} />}
        {form.may === "api" && <Owner value={form.owner} set={set} />}
        <Rate value={form.rate} set={set} />
        {isFirst(keys, plan.scopes) && !closed && <FirstKeyWarning />}
        {action.problem.value !== undefined && <ErrorNotice error={action.problem.value} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={action.busy.value || isMissing(form)}>
            Create key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface PartProps {
  value: string;
  set: (change: Partial<KeyFields>) => void;
}

function Name({ value, set }: PartProps) {
  return (
    <TextField
      label="Name"
      hint="Which program uses it."
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
      hint="Another person: this key sees only their conversations, memories and jobs, not yours."
      value={value}
      onInput={(owner) => set({ owner })}
    />
  );
}

function Rate({ value, set }: PartProps) {
  return (
    <TextField
      label="Requests per minute (optional)"
      hint="Empty: no limit."
      inputMode="numeric"
      pattern="\d*"
      title="a whole number"
      value={value}
      onInput={(rate) => set({ rate })}
    />
  );
}

function FirstKeyWarning() {
  return (
    <p class="consequence" role="note">
      <strong>This is the first key.</strong> Once it exists, every program needs a key, on this machine too. This
      browser stays signed in.
    </p>
  );
}

function Choices({ may, onChoose }: { may: Permission; onChoose: (may: Permission) => void }) {
  return (
    <fieldset class="key-choices">
      <legend>Permissions</legend>
      {PERMISSIONS.map(({ value, label, meaning }) => (
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

type Permission = "api" | "admin" | "webhook";

interface KeyFields {
  name: string;
  may: Permission;
  /** For a webhook key. */
  route: string;
  /** For an API key. */
  owner: string;
  rate: string;
}

export const EMPTY: KeyFields = { name: "", may: "api", route: "", owner: "", rate: "" };

/** Return the request for a key.  Fields that do not apply to the permission are left out. */
export function keyPlan({ name, may, route, owner, rate }: KeyFields): Required<KeyPlan> {
  return {
    name: name.trim(),
    scopes: [{ api: API, admin: ADMIN, webhook: `${WEBHOOK}${route.trim()}` }[may]],
    owner: (may === "api" && owner.trim()) || OPERATOR,
    rate_limit: Number(rate) || 0,
  };
}

/** Whether a required field is empty. */
export const isMissing = ({ name, may, route }: KeyFields) => !name.trim() || (may === "webhook" && !route.trim());

const API = "api";
const ADMIN = "admin";
const WEBHOOK = "webhook:";
/** The owner of everything that names no other owner. */
export const OPERATOR = "local";

export const isLive = (key: KeyView) => key.revoked_at === null;
export const opensApi = (key: KeyView) => isLive(key) && key.scopes.some((each) => each === API || each === ADMIN);

/** Return whether a key with these scopes would be the first that grants API access. */
export const isFirst = (keys: readonly KeyView[], scopes: readonly string[]) =>
  !keys.some(opensApi) && scopes.some((each) => each === API || each === ADMIN);

/** Return whether this is the last key that grants API access. */
export const isLast = (keys: readonly KeyView[], key: KeyView) => opensApi(key) && keys.filter(opensApi).length === 1;

const ASKING = ["server.api_key", "server.password"];

export function useConfiguredAccess(): boolean {
  const [settings] = useLoaded<SettingsView>("/api/settings");
  const items = settings.value.value?.items ?? [];
  return items.some((each) => ASKING.includes(each.key) && Boolean(each.value));
}
