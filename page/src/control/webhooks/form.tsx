/** The form that adds or changes a route. */

import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/parts.tsx";
import { useAction } from "../../ui/requests.ts";
import type { NewRoute, RoutePlan, RouteView } from "../../wire.ts";
import { ErrorNotice, TextField } from "../parts.tsx";

interface RouteFormProps {
  /** The route to change; without one, the form adds a route. */
  route?: RouteView;
  onSaved: (route: NewRoute) => void;
  onClose: () => void;
}

/** The form for a route. */
export function RouteForm({ route, onSaved, onClose }: RouteFormProps) {
  const [form, setForm] = useState<RouteFields>(route ? routeFields(route) : EMPTY);
  const action = useAction();
  const set = (change: Partial<RouteFields>) => setForm({ ...form, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run(async () => onSaved(await post<NewRoute>("/api/webhooks", routePlan(form, route))));
  };
  const isMissing = !form.name.trim() || !form.prompt.trim();
  return (
    <Dialog wide title={route ? `Edit ${route.name}` : "New route"} onClose={onClose}>
      <form class="route-form" onSubmit={submit}>
        {!route && <Name value={form.name} set={set} />}
        <Prompt value={form.prompt} set={set} />
        <Deliver form={form} set={set} />
        <Events value={form.events} set={set} />
        <Signature form={form} set={set} hasSecret={route?.signed ?? false} />
        <Rate value={form.rate} set={set} />
        {action.problem.value !== undefined && <ErrorNotice error={action.problem.value} />}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" disabled={action.busy.value || isMissing}>
            {route ? "Save" : "Add route"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

type Set = (change: Partial<RouteFields>) => void;

function Name({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Name"
      hint={`Address: ${location.origin}/webhooks/${value.trim() || "NAME"}`}
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
      <Field label="Prompt" hint="What the agent is told for each delivery.">
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

function Deliver({ form, set }: { form: RouteFields; set: Set }) {
  return (
    <>
      <TextField
        label="Deliver the answer to"
        hint="log: only in the conversation. Or file:NAME, url:https://… or github_comment:{repository.full_name}#{pull_request.number}"
        value={form.deliver}
        onInput={(deliver) => set({ deliver })}
      />
      <label class="route-check">
        <input
          type="checkbox"
          checked={form.deliverOnly}
          onChange={(event) => set({ deliverOnly: event.currentTarget.checked })}
        />
        <span>Send the prompt as it is, without the agent</span>
      </label>
    </>
  );
}

function Events({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Events (optional)"
      hint="Only these start a turn, separated by commas. Empty: all."
      placeholder="alert.fired, alert.resolved"
      value={value}
      onInput={(events) => set({ events })}
    />
  );
}

function Signature({ form, set, hasSecret }: { form: RouteFields; set: Set; hasSecret: boolean }) {
  const hint = hasSecret
    ? "Empty: keep the current one."
    : "Empty: a new one is created and shown once. Slack and Stripe give you theirs.";
  return (
    <>
      <Field label="Signature" hint="Detected from the headers. Choose one to accept no other.">
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
        <span>Accept unsigned deliveries, only from the gateway’s own machine</span>
      </label>
    </>
  );
}

function Rate({ value, set }: { value: string; set: Set }) {
  return (
    <TextField
      label="Deliveries per minute (optional)"
      hint="Empty: no limit."
      inputMode="numeric"
      pattern="\d*"
      title="a whole number"
      value={value}
      onInput={(rate) => set({ rate })}
    />
  );
}

const PLACEHOLDERS = [
  ["{message}", "a field of the payload"],
  ["{host.name}", "a nested field"],
  ["{items.0.name}", "an item of a list"],
  ["{event_type}", "the event name, as sent by GitHub, Slack and others"],
  ["{__raw__}", "the first 4,000 characters of the payload"],
  ["{{ and }}", "a brace"],
] as const;

/** The placeholders of a prompt. */
function Placeholders() {
  return (
    <details class="placeholders">
      <summary>Placeholders</summary>
      <dl>
        {PLACEHOLDERS.map(([placeholder, meaning]) => (
          <div key={placeholder}>
            <dt>
              <code>{placeholder}</code>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p>A missing field reads &lt;missing&gt;.</p>
    </details>
  );
}

type SchemeChoice = NonNullable<RoutePlan["scheme"]>;

const SCHEMES: readonly { value: SchemeChoice; label: string }[] = [
  { value: "any", label: "Detect automatically" },
  { value: "standard", label: "Standard Webhooks" },
  { value: "github", label: "GitHub" },
  { value: "gitlab", label: "GitLab" },
  { value: "slack", label: "Slack" },
  { value: "stripe", label: "Stripe" },
  { value: "hmac", label: "Custom HMAC" },
];

interface RouteFields {
  name: string;
  prompt: string;
  deliver: string;
  deliverOnly: boolean;
  events: string;
  scheme: SchemeChoice;
  secret: string;
  unsigned: boolean;
  rate: string;
}

export const EMPTY: RouteFields = {
  name: "",
  prompt: "{__raw__}",
  deliver: "log",
  deliverOnly: false,
  events: "",
  scheme: "any",
  secret: "",
  unsigned: false,
  rate: "",
};

/** Return the form fields of a route. */
export function routeFields(route: RouteView): RouteFields {
  return {
    name: route.name,
    prompt: route.prompt,
    deliver: route.deliver,
    deliverOnly: route.deliver_only,
    events: route.events.join(", "),
    scheme: SCHEMES.find((each) => each.value === route.scheme)?.value ?? "any",
    secret: "",
    unsigned: !route.signed,
    rate: route.rate_limit ? String(route.rate_limit) : "",
  };
}

/** Return the request for a route; what the form does not show stays the same. */
export function routePlan(form: RouteFields, before?: RouteView): RoutePlan {
  return {
    name: form.name.trim(),
    secret: form.secret.trim(),
    prompt: form.prompt,
    deliver: form.deliver.trim() || "log",
    deliver_only: form.deliverOnly,
    events: form.events
      .split(",")
      .map((each) => each.trim())
      .filter(Boolean),
    scheme: form.scheme,
    insecure_no_auth: form.unsigned,
    rate_limit: Number(form.rate) || 0,
    ...(before ? { filters: before.filters, enabled: before.enabled, body_limit: before.body_limit } : {}),
  };
}
