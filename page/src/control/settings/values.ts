/** Sections of settings, and their values as text in a field and back. */

import type { SettingView } from "../../wire.ts";

interface Group {
  /** As in the file: [tools.terminal] */
  name: string;
  items: readonly SettingView[];
}

/** The most used sections come first; sections that are not listed come last. */
const ORDER = [
  "model",
  "agent",
  "memory",
  "tools",
  "budget",
  "sessions",
  "gateway",
  "server",
  "store",
  "channels",
  "providers",
  "mcp",
];
const TITLES: Record<string, string> = { mcp: "MCP" };

export const sectionOf = (setting: SettingView) => setting.key.split(".")[0]!;
export const nameOf = (setting: SettingView) => setting.key.split(".").at(-1)!;
const groupOf = (setting: SettingView) => setting.key.split(".").slice(0, -1).join(".");

export const titleOf = (section: string) => TITLES[section] ?? section[0]!.toUpperCase() + section.slice(1);

/** Return the sections. */
export function sections(items: readonly SettingView[]): string[] {
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return [...new Set(items.map(sectionOf))].sort((a, b) => place(a) - place(b));
}

/** Return settings grouped by their table in the file. */
export function grouped(items: readonly SettingView[]): Group[] {
  const names = [...new Set(items.map(groupOf))];
  return names.map((name) => ({ name, items: items.filter((each) => groupOf(each) === name) }));
}

/** Return the settings whose key or description has all words of a search. */
export function searchSettings(items: readonly SettingView[], searched: string): SettingView[] {
  const words = searched.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((each) => words.every((word) => `${each.key} ${each.doc}`.toLowerCase().includes(word)));
}

/** The text is no valid value of the setting. */
export class InvalidValue extends Error {}

/** Return a value as the text of its field. */
export function fieldText({ form }: Pick<SettingView, "form">, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (form === "list" && Array.isArray(value)) return value.join("\n");
  if (form === "table" && isTable(value)) {
    return Object.entries(value)
      .map(([name, each]) => `${name} = ${each}`)
      .join("\n");
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Return a text as a value.  Throws `InvalidValue` with the expected form. */
export function parseField({ form, value, default: usual }: SettingView, text: string): unknown {
  switch (form) {
    case "number":
      return number(text);
    case "list":
      return lines(text);
    case "table":
      return table(text, [value, usual].some(holdsNumbers));
    default:
      return text;
  }
}

function number(text: string): number {
  const found = Number(text);
  if (!text.trim() || !Number.isFinite(found)) throw new InvalidValue("It must be a number.");
  return found;
}

const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function table(text: string, numbers: boolean): Record<string, string | number> {
  const pairs = lines(text).map((line) => {
    const divider = line.indexOf("=");
    if (divider < 1) throw new InvalidValue(`Each line must be name = value: “${line}” is not.`);
    const value = line.slice(divider + 1).trim();
    return [line.slice(0, divider).trim(), numbers ? number(value) : value] as const;
  });
  return Object.fromEntries(pairs);
}

const holdsNumbers = (value: unknown) =>
  isTable(value) && Object.values(value).some((each) => typeof each === "number");

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return whether two values are equal, in any order of their keys. */
export function isEqual(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  if (!isTable(value)) return JSON.stringify(value ?? null);
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
