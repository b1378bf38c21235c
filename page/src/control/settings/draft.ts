/** The settings and the unsaved changes to them, which survive a change of page. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, patch, Refused } from "../../api.ts";
import type { SettingsView, SettingView } from "../../wire.ts";
import { needsOperator } from "../parts.tsx";
import { isEqual } from "./values.ts";

const PATH = "/api/settings";

const loaded = signal<SettingsView | null>(null);
const edited = signal<Readonly<Record<string, unknown>>>({});
const lastProblem = signal<unknown>(undefined);
const invalid = signal<Readonly<Record<string, string>>>({});
const rejected = signal<Readonly<Record<string, string>>>({});
const saving = signal(false);
const resets = signal(0);

export const settings: ReadonlySignal<SettingsView | null> = loaded;
/** By key; null resets to the default. */
export const changes: ReadonlySignal<Readonly<Record<string, unknown>>> = edited;
export const problem: ReadonlySignal<unknown> = lastProblem;
/** What is wrong with the edited values, by key. */
export const objections = computed(() => ({ ...rejected.value, ...invalid.value }));
/** The setting that the gateway rejected, until the person edits again. */
export const refusedKey = computed(() => Object.keys(rejected.value)[0] ?? null);
export const busy: ReadonlySignal<boolean> = saving;
/** Incremented when fields must show the stored value again. */
export const resetCount: ReadonlySignal<number> = resets;
export const changed = computed(() => Object.keys(edited.value).length);
export const canSave = computed(() => changed.value > 0 && !saving.value && !Object.keys(invalid.value).length);

/** Load the settings; edits stay. */
export async function load(): Promise<void> {
  try {
    loaded.value = await get<SettingsView>(PATH);
    lastProblem.value = undefined;
  } catch (error) {
    // A person who is no longer the operator sees nothing.
    if (needsOperator(error)) clearAll();
    lastProblem.value = error;
  }
}

function clearAll(): void {
  loaded.value = null;
  discard();
}

/** Edit a setting; a value that equals the stored one is no edit. */
export function changeSetting(setting: SettingView, value: unknown): void {
  reportInvalid(setting, "");
  edited.value = isEqual(value, setting.value)
    ? withoutEntry(edited.value, setting.key)
    : { ...edited.value, [setting.key]: value };
}

/** Reset a setting to its default. */
export function reset(setting: SettingView): void {
  changeSetting(setting, null);
  resets.value += 1;
}

/** Drop the edit of a setting. */
export function revert(setting: SettingView): void {
  reportInvalid(setting, "");
  resets.value += 1;
  edited.value = withoutEntry(edited.value, setting.key);
}

/** Set or clear the error of an edited value. */
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

/** Save the edits to the file.  Returns whether that succeeded. */
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

/** A rejection that names a setting is shown beside it. */
function showRejection(error: unknown): void {
  const key = error instanceof Refused ? error.problem.key : undefined;
  if (error instanceof Refused && key && key in edited.value)
    rejected.value = { [key]: withoutKey(error.message, key) };
  lastProblem.value = error;
}

/** Return a message without the key it starts with, which is shown beside it. */
function withoutKey(message: string, key: string): string {
  const rest = message.toLowerCase().startsWith(`${key}: `) ? message.slice(key.length + 2) : message;
  return rest[0]!.toUpperCase() + rest.slice(1);
}

function withoutEntry<T>(from: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([each]) => each !== key));
}
