/** What a tool needs to show its calls, and safe access to arguments that a model wrote. */

import type { ComponentChildren } from "preact";
import type { CallItem } from "../../journal/view.ts";
import type { IconName } from "../../ui/icon.tsx";

export interface CallProps {
  call: CallItem;
  /** The turn it belongs to. */
  turnId: string;
}

export interface Renderer {
  icon: IconName;
  /** What the tool does, in a word or two. */
  name: (call: CallItem) => string;
  /** Its subject: the command, the file, the search words. */
  subject: (call: CallItem) => string;
  /** Its result, very short. */
  outcome?: (call: CallItem) => string;
  /** Whether it is unfolded from the start. */
  isOpen?: (call: CallItem) => boolean;
  Body: (props: CallProps) => ComponentChildren;
}

type Fields = Record<string, unknown>;

export function fields(args: unknown): Fields {
  return typeof args === "object" && args !== null && !Array.isArray(args) ? (args as Fields) : {};
}

export function textArgument(args: unknown, name: string): string {
  const value = fields(args)[name];
  return typeof value === "string" ? value : "";
}

export const flagArgument = (args: unknown, name: string) => fields(args)[name] === true;

export function listArgument(args: unknown, name: string): unknown[] {
  const value = fields(args)[name];
  return Array.isArray(value) ? value : [];
}

/** Return a result that is a JSON object; else null. */
export function resultFields(result: string | null): Fields | null {
  if (!result?.startsWith("{")) return null;
  try {
    return fields(JSON.parse(result));
  } catch {
    return null;
  }
}

/** Return a value as text. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2) ?? "";
}

/** Return the verb for a call that runs, succeeded, or did not. */
export function verb(call: CallItem, running: string, done: string, intended: string): string {
  if (call.outcome === null) return running;
  return call.outcome === "ok" ? done : intended;
}

/** Return the first line of a text. */
export function firstLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? text : `${text.slice(0, end)} …`;
}
