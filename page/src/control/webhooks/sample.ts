/** A payload to try a route with: every field that its templates name, filled with something. */

import type { RouteView } from "../../wire.ts";

const PIECES = /\{\{|\}\}|\{([^{}]*)\}/g;
/** Placeholders that are no fields of the payload. */
const BUILT_IN = new Set(["__raw__", "event_type"]);
const NUMBER = /^\d+$/;

type Json = { [name: string]: Json } | Json[] | string;

/** Return the fields that a template names. */
export function fieldsOf(template: string): string[] {
  const found = [...template.matchAll(PIECES)].flatMap((match) => (match[1] ? [match[1].trim()] : []));
  return [...new Set(found)].filter((each) => each && !BUILT_IN.has(each));
}

/** Return a payload for a route that is worth answering. */
export function sample(route: Pick<RouteView, "prompt" | "deliver" | "events">): Json {
  const payload: { [name: string]: Json } = route.events[0] ? { type: route.events[0] } : {};
  const fields = [...fieldsOf(route.prompt), ...fieldsOf(route.deliver)];
  for (const field of fields)
    put(payload, field.split("."), `sample ${field.split(".").findLast((part) => !NUMBER.test(part)) ?? "value"}`);
  return fields.length ? payload : { ...payload, message: "Is anybody there?" };
}

function put(into: { [name: string]: Json } | Json[], [name = "", ...rest]: string[], value: string): void {
  const place = into as { [name: string]: Json };
  const there = Object.hasOwn(place, name) ? place[name] : undefined;
  if (rest.length === 0) {
    if (there === undefined) set(place, name, value);
    return;
  }
  const inner = typeof there === "object" ? there : NUMBER.test(rest[0]!) ? [] : {};
  set(place, name, inner);
  put(inner, rest, value);
}

/** A field may have any name, also one that means something to the language. */
function set(into: object, name: string, value: Json): void {
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}
