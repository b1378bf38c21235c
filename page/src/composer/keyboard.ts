/** The keys of the field at work. */

import type { Turn } from "../journal/view.ts";
import { atWork } from "../turns/standing.ts";
import { attempt } from "../ui/toast.tsx";
import { isTouched } from "./field.tsx";
import { type Intent, intentOf, recalled } from "./keys.ts";
import { asked } from "./message.ts";
import type { Offer } from "./offer.ts";
import { stopAtWork } from "./sending.ts";
import type { Way } from "./ways.ts";
import type { Writing } from "./writing.ts";

interface Keyed {
  writing: Writing;
  turns: readonly Turn[];
  ways: readonly Way[];
  offer: Offer;
  send: (way?: Way) => void;
}

/** Return what the field does with a key. */
export function keysFor(keyed: Keyed): (event: KeyboardEvent) => void {
  return (event) => {
    const intent = intentOf(event, { listed: keyed.offer.commands.length > 0, touched: isTouched() });
    if (intent && act(intent, keyed, event.currentTarget as HTMLTextAreaElement)) event.preventDefault();
  };
}

/** Do what a key means; false where it is to do what it does anyway. */
function act(intent: Intent, { writing, turns, ways, offer, send }: Keyed, field: HTMLTextAreaElement): boolean {
  switch (intent) {
    case "send":
      send();
      return true;
    case "steer":
      send(ways.find((each) => each.name === "steer"));
      return true;
    case "older":
    case "newer":
      return recall(intent, writing, turns, field);
    case "stop":
      return halt(writing, turns);
    default:
      offer.steer(intent, send);
      return true;
  }
}

function recall(way: "older" | "newer", writing: Writing, turns: readonly Turn[], field: HTMLTextAreaElement): boolean {
  const edge = way === "older" ? field.selectionStart === 0 : field.selectionStart === field.value.length;
  // In a text of several lines the arrows move, until they can go no further.
  if (field.value.includes("\n") && !edge) return false;
  const text = recalled(asked(turns), field.value, way);
  if (text !== null) writing.text.value = text;
  return text !== null;
}

/** Stop what runs; not what waits for its person, nor under what they are just writing. */
function halt(writing: Writing, turns: readonly Turn[]): boolean {
  if (writing.text.value || atWork(turns)?.state !== "running") return false;
  attempt(() => stopAtWork(turns));
  return true;
}
