/** The settings and the unsaved changes to them, which survive a change of page. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, patch, Refused } from "../../api.ts";
import type { SettingsView, SettingView } from "../../wire.ts";
import { isForOperator } from "../parts.tsx";
import { same } from "./values.ts";

const PATH = "/api/settings";

const known = signal<SettingsView | null>(null);
const wanted = signal<Readonly<Record<string, unknown>>>({});
const trouble = signal<unknown>(undefined);
const unreadable = signal<Readonly<Record<string, string>>>({});
const refused = signal<Readonly<Record<string, string>>>({});
const saving = signal(false);
const begun = signal(0);

export const settings: ReadonlySignal<SettingsView | null> = known;
/** By key; null is the default. */
export const changes: ReadonlySignal<Readonly<Record<string, unknown>>> = wanted;
export const problem: ReadonlySignal<unknown> = trouble;
/** What is wrong with what was written, by key. */
export const objections = computed(() => ({ ...refused.value, ...unreadable.value }));
/** The one that the gateway refused, until something is written. */
export const refusedKey = computed(() => Object.keys(refused.value)[0] ?? null);
export const busy: ReadonlySignal<boolean> = saving;
/** Counts up whenever fields are to show again what is known here, instead of what was written in them. */
export const fresh: ReadonlySignal<number> = begun;
export const changed = computed(() => Object.keys(wanted.value).length);
export const canSave = computed(() => changed.value > 0 && !saving.value && !Object.keys(unreadable.value).length);

/** Read what holds now; what was to be changed still is. */
export async function load(): Promise<void> {
  try {
    known.value = await get<SettingsView>(PATH);
    trouble.value = undefined;
  } catch (error) {
    // Whoever is not the operator any more sees nothing of it.
    if (isForOperator(error)) forget();
    trouble.value = error;
  }
}

function forget(): void {
  known.value = null;
  discard();
}

/** Note that a setting is to be something else; as it is already, there is nothing to note. */
export function change(setting: SettingView, value: unknown): void {
  object(setting, "");
  wanted.value = same(value, setting.value)
    ? without(wanted.value, setting.key)
    : { ...wanted.value, [setting.key]: value };
}

/** Let a setting be its default, whatever that will be. */
export function reset(setting: SettingView): void {
  change(setting, null);
  begun.value += 1;
}

/** Let a setting be as it is. */
export function leave(setting: SettingView): void {
  object(setting, "");
  begun.value += 1;
  wanted.value = without(wanted.value, setting.key);
}

/** Say what is wrong with what was written; with nothing, that it can be read. */
export function object(setting: SettingView, reason: string): void {
  if (refusedKey.value) {
    refused.value = {};
    trouble.value = undefined;
  }
  if (reason || setting.key in unreadable.value) {
    unreadable.value = reason ? { ...unreadable.value, [setting.key]: reason } : without(unreadable.value, setting.key);
  }
}

export function discard(): void {
  begun.value += 1;
  wanted.value = {};
  unreadable.value = {};
  refused.value = {};
  trouble.value = undefined;
}

/** Write the changes to the file.  Returns whether that was done. */
export async function save(): Promise<boolean> {
  saving.value = true;
  try {
    known.value = await patch<SettingsView>(PATH, { changes: wanted.value, base: known.value?.revision ?? null });
    discard();
    return true;
  } catch (error) {
    complain(error);
    return false;
  } finally {
    saving.value = false;
  }
}

/** A refusal that names its setting is shown beside that. */
function complain(error: unknown): void {
  const key = error instanceof Refused ? error.problem.key : undefined;
  if (error instanceof Refused && key && key in wanted.value) refused.value = { [key]: bare(error.message, key) };
  trouble.value = error;
}

/** Return what is said about a setting without its name, which stands beside it. */
function bare(message: string, key: string): string {
  const said = message.toLowerCase().startsWith(`${key}: `) ? message.slice(key.length + 2) : message;
  return said[0]!.toUpperCase() + said.slice(1);
}

function without<T>(from: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([each]) => each !== key));
}
