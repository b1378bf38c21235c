// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { fieldsOf, samplePayload } from "../../src/control/webhooks/deliveries.tsx";
import { EMPTY, routeFields, routePlan } from "../../src/control/webhooks/form.tsx";
import type { RouteView } from "../../src/wire.ts";

const route: RouteView = {
  name: "alerts",
  path: "/webhooks/alerts",
  source: "added",
  signed: true,
  prompt: "Alert: {message}",
  deliver: "log",
  deliver_only: false,
  events: ["alert.fired"],
  filters: { field: "severity", equals: "high" },
  enabled: false,
  rate_limit: 60,
  body_limit: 2_048,
  scheme: "hmac",
};

test("the fields of a template are the names in single braces, once each", () => {
  expect(fieldsOf("{{not}} {a.b} and {a.b}, {__raw__}, {event_type}, {c}")).toEqual(["a.b", "c"]);
});

test("a sample has every field that the prompt and the target use", () => {
  const made = samplePayload({
    prompt: "{host.name}: {items.0.id} {items.0.name}",
    deliver: "url:{to}",
    events: ["fired"],
  });
  expect(made).toEqual({
    type: "fired",
    host: { name: "sample name" },
    items: [{ id: "sample id", name: "sample name" }],
    to: "sample to",
  });
});

test("a field with nested fields becomes an object", () => {
  expect(samplePayload({ prompt: "{a} {a.b}", deliver: "log", events: [] })).toEqual({ a: { b: "sample b" } });
});

test("a route without fields gets a message", () => {
  expect(samplePayload({ prompt: "{__raw__}", deliver: "log", events: [] })).toHaveProperty("message");
});

test("a field may have the name of a property that every object has", () => {
  expect(JSON.stringify(samplePayload({ prompt: "{__proto__.x}", deliver: "log", events: [] }))).toBe(
    '{"__proto__":{"x":"sample x"}}',
  );
});

test("settings that the form does not show stay the same", () => {
  expect(routePlan(routeFields(route), route)).toEqual({
    name: "alerts",
    secret: "",
    prompt: "Alert: {message}",
    deliver: "log",
    deliver_only: false,
    events: ["alert.fired"],
    filters: route.filters,
    enabled: false,
    rate_limit: 60,
    body_limit: 2_048,
    scheme: "hmac",
    insecure_no_auth: false,
  });
});

test("events are separated by commas, and an empty limit is no limit", () => {
  const plan = routePlan({ ...EMPTY, name: " a ", events: "one, two,,", rate: "" });
  expect(plan).toMatchObject({ name: "a", events: ["one", "two"], rate_limit: 0 });
});
