import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDoing } from "../../ui/doing.ts";
import { Field } from "../../ui/parts.tsx";
import { TextField } from "../../ui/text_field.tsx";
import type { NewRoute, RouteView } from "../../wire.ts";
import { Trouble } from "../parts/trouble.tsx";
import { Placeholders } from "./placeholders.tsx";
import { EMPTY, planned, SCHEMES, type Written, written } from "./plan.ts";

interface RouteFormProps {
  /** The route that is changed; without one, a route is added. */
  route?: RouteView;
  onSaved: (route: NewRoute) => void;
  onClose: () => void;
}

/** A route to be added or changed. */
export function RouteForm({ route, onSaved, onClose }: RouteFormProps) {
  const [form, setForm] = useState<Written>(route ? written(route) : EMPTY);
  const doing = useDoing();
  const set = (change: Partial<Written>) => setForm({ ...form, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    doing.run(async () => onSaved(await post<NewRoute>("/api/webhooks", planned(form, route))));
  };
  const isMissing = !form.name.trim() || !form.prompt.trim();
  return (
    <Dialog wide title={route ? `Change ${route.name}` : "New route"} onClose={onClose}>
      <form class="route-form" onSubmit={submit}>
        {!route && <Name value={form.name} set={set} />}
        <Prompt value={form.prompt} set={set} />
        <Deliver form={form} set={set} />
        <Events value={form.events} set={set} />
        <Signature form={form} set={set} kept={route?.signed ?? false} />
        <Rate value={form.rate} set={set} />
        {doing.problem.value !== undefined && <Trouble error={doing.problem.value} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={doing.busy.value || isMissing}>
            {route ? "Save" : "Add the route"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

type Set = (change: Partial<Written>) => void;

function Name({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Name"
      hint={`It becomes the address: ${location.origin}/webhooks/${value.trim() || "NAME"}`}
      required
      placeholder="alerts"
      value={value}
      onInput={(name) => set({ name })}
    />
  );
}

function Prompt({ value, set }: { value: string; set: Set }) {
  return (
    <div class="prompt-field">
      <Field label="Prompt" hint="What the agent is told about a delivery.">
        {(control) => (
          <textarea
            {...control}
            required
            rows={4}
            value={value}
            onInput={(event) => set({ prompt: event.currentTarget.value })}
          />
        )}
      </Field>
      <Placeholders />
    </div>
  );
}

function Deliver({ form, set }: { form: Written; set: Set }) {
  return (
    <>
      <TextField
        label="Where the answer goes"
        hint="log: nowhere, read it in the conversation. file:NAME, url:https://…, or github_comment:{repository.full_name}#{pull_request.number}"
        value={form.deliver}
        onInput={(deliver) => set({ deliver })}
      />
      <label class="route-check">
        <input
          type="checkbox"
          checked={form.deliverOnly}
          onChange={(event) => set({ deliverOnly: event.currentTarget.checked })}
        />
        <span>Send the text of the prompt as it is, without an agent</span>
      </label>
    </>
  );
}

function Events({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Events (optional)"
      hint="Only these start a turn, with commas between them; without any, all do."
      placeholder="alert.fired, alert.resolved"
      value={value}
      onInput={(events) => set({ events })}
    />
  );
}

function Signature({ form, set, kept }: { form: Written; set: Set; kept: boolean }) {
  const hint = kept
    ? "Empty keeps the one it has."
    : "Empty makes one up, which is shown once. Slack and Stripe give you theirs.";
  return (
    <>
      <Field label="Who signs" hint="Senders are recognised by their headers; choose one to take no other.">
        {(control) => (
          <select
            {...control}
            disabled={form.unsigned}
            value={form.scheme}
            onChange={(event) =>
              set({ scheme: SCHEMES.find((each) => each.value === event.currentTarget.value)?.value ?? "any" })
            }
          >
            {SCHEMES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {!form.unsigned && (
        <Field label="Secret (optional)" hint={hint}>
          {(control) => (
            <input
              {...control}
              type="password"
              autocomplete="off"
              value={form.secret}
              onInput={(event) => set({ secret: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
      <label class="route-check">
        <input
          type="checkbox"
          checked={form.unsigned}
          onChange={(event) => set({ unsigned: event.currentTarget.checked })}
        />
        <span>Take deliveries without a signature, from the gateway’s own machine only</span>
      </label>
    </>
  );
}

function Rate({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Deliveries per minute (optional)"
      hint="Without a number, as many as come."
      inputMode="numeric"
      pattern="\d*"
      title="a whole number"
      value={value}
      onInput={(rate) => set({ rate })}
    />
  );
}
