/** The settings and the unsaved changes to them, which survive a change of page. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, patch, Refused } from "../../api.ts";
import type { SettingsView, SettingView } from "../../wire.ts";
import { needsOperator } from "../parts.tsx";
import { same } from "./values.ts";

const PATH = "/api/settings";

const loaded = signal<SettingsView | null>(null);
const edited = signal<Readonly<Record<string, unknown>>>({});
const lastProblem = signal<unknown>(undefined);
const invalid = signal<Readonly<Record<string, string>>>({});
const rejected = signal<Readonly<Record<string, string>>>({});
const saving = signal(false);
const resets = signal(0);

export const settings: ReadonlySignal<SettingsView | null> = loaded;
/** By key; null is the default. */
export const changes: ReadonlySignal<Readonly<Record<string, unknown>>> = edited;
export const problem: ReadonlySignal<unknown> = lastProblem;
/** What is wrong with what was written, by key. */
export const objections = computed(() => ({ ...rejected.value, ...invalid.value }));
/** The one that the gateway refused, until something is written. */
export const refusedKey = computed(() => Object.keys(rejected.value)[0] ?? null);
export const busy: ReadonlySignal<boolean> = saving;
/** Counts up whenever fields are to show again what is known here, instead of what was written in them. */
export const resetCount: ReadonlySignal<number> = resets;
export const changed = computed(() => Object.keys(edited.value).length);
export const canSave = computed(() => changed.value > 0 && !saving.value && !Object.keys(invalid.value).length);

/** Read what holds now; what was to be changed still is. */
export async function load(): Promise<void> {
  try {
    loaded.value = await get<SettingsView>(PATH);
    lastProblem.value = undefined;
  } catch (error) {
    // Whoever is not the operator any more sees nothing of it.
    if (needsOperator(error)) clearAll();
    lastProblem.value = error;
  }
}

function clearAll(): void {
  loaded.value = null;
  discard();
}

/** Note that a setting is to be something else; as it is already, there is nothing to note. */
export function changeSetting(setting: SettingView, value: unknown): void {
  reportInvalid(setting, "");
  edited.value = same(value, setting.value)
    ? withoutEntry(edited.value, setting.key)
    : { ...edited.value, [setting.key]: value };
}

/** Let a setting be its default, whatever that will be. */
export function reset(setting: SettingView): void {
  changeSetting(setting, null);
  resets.value += 1;
}

/** Let a setting be as it is. */
export function revert(setting: SettingView): void {
  reportInvalid(setting, "");
  resets.value += 1;
  edited.value = withoutEntry(edited.value, setting.key);
}

/** Say what is wrong with what was written; with nothing, that it can be read. */
export function reportInvalid(setting: SettingView, reason: string): void {
  if (refusedKey.value) {
    rejected.value = {};
    lastProblem.value = undefined;
  }
  if (reason || setting.key in invalid.value) {
    invalid.value = reason ? { ...invalid.value, [setting.key]: reason } : withoutEntry(invalid.value, setting.key);
  }
}

export function discard(): void {
  resets.value += 1;
  edited.value = {};
  invalid.value = {};
  rejected.value = {};
  lastProblem.value = undefined;
}

/** Write the changes to the file.  Returns whether that was done. */
export async function save(): Promise<boolean> {
  saving.value = true;
  try {
    loaded.value = await patch<SettingsView>(PATH, { changes: edited.value, base: loaded.value?.revision ?? null });
    discard();
    return true;
  } catch (error) {
    showRejection(error);
    return false;
  } finally {
    saving.value = false;
  }
}

/** A refusal that names its setting is shown beside that. */
function showRejection(error: unknown): void {
  const key = error instanceof Refused ? error.problem.key : undefined;
  if (error instanceof Refused && key && key in edited.value)
    rejected.value = { [key]: withoutKey(error.message, key) };
  lastProblem.value = error;
}

/** Return what is said about a setting without its name, which stands beside it. */
function withoutKey(message: string, key: string): string {
  const said = message.toLowerCase().startsWith(`${key}: `) ? message.slice(key.length + 2) : message;
  return said[0]!.toUpperCase() + said.slice(1);
}

function withoutEntry<T>(from: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([each]) => each !== key));
}
