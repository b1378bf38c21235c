/** A route as it is written in its form, and as the gateway takes it. */

import type { RoutePlan, RouteView } from "../../wire.ts";

export type SchemeChoice = NonNullable<RoutePlan["scheme"]>;

export const SCHEMES: readonly { value: SchemeChoice; label: string }[] = [
  { value: "any", label: "Any of them" },
  { value: "standard", label: "Standard Webhooks" },
  { value: "github", label: "GitHub" },
  { value: "gitlab", label: "GitLab" },
  { value: "slack", label: "Slack" },
  { value: "stripe", label: "Stripe" },
  { value: "hmac", label: "HMAC of my own" },
];

export interface Written {
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

export const EMPTY: Written = {
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

/** Return a route as it stands in its form. */
export function written(route: RouteView): Written {
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

/** Return what to ask for; what the form does not show stays as it was. */
export function planned(form: Written, before?: RouteView): RoutePlan {
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
