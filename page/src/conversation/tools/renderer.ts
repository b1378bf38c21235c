/** What a tool needs to show its calls, and safe access to arguments that a model wrote. */

import type { ComponentChildren } from "preact";
import type { CallItem } from "../../journal/view.ts";
import type { IconName } from "../../ui/icon.tsx";

export interface CallProps {
  call: CallItem;
  /** The turn that it belongs to. */
  turnId: string;
}

export interface Renderer {
  icon: IconName;
  /** What is done, in a word or two. */
  name: (call: CallItem) => string;
  /** To what: the command, the file, the words that are looked for. */
  subject: (call: CallItem) => string;
  /** What came of it, very short. */
  outcome?: (call: CallItem) => string;
  /** Shown without being asked for. */
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

/** Return what a result says as JSON; null where it is none, or no object. */
export function resultFields(result: string | null): Fields | null {
  if (!result?.startsWith("{")) return null;
  try {
    return fields(JSON.parse(result));
  } catch {
    return null;
  }
}

/** Return a value as somebody would write it down. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2) ?? "";
}

/** Say what is being done, was done, or was only to be done. */
export function tense(call: CallItem, doing: string, done: string, meant: string): string {
  if (call.outcome === null) return doing;
  return call.outcome === "ok" ? done : meant;
}

/** Return the first line of a text. */
export function firstLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? text : `${text.slice(0, end)} …`;
}
