import { expect, test } from "vitest";
import {
  fieldText,
  grouped,
  InvalidValue,
  isEqual,
  parseField,
  searchSettings,
  sections,
} from "../../src/control/settings/values.ts";
import type { SettingForm, SettingView } from "../../src/wire.ts";

const setting = (key: string, form: SettingForm, value: unknown = null, usual: unknown = null): SettingView => ({
  key,
  value,
  default: usual,
  source: "default",
  secret: false,
  doc: `What ${key} means.`,
  form,
});

test.each<[SettingForm, unknown]>([
  ["text", "a = b"],
  ["number", 0.8],
  ["time", "04:00"],
  ["list", ["AGENTS.md", "notes, and more.md"]],
  ["table", { webhook: 7, cron: 30 }],
  ["table", { telegram: "daily" }],
])("a %s that is written and read again is the same", (form, value) => {
  const one = setting("some.setting", form, value);
  expect(parseField(one, fieldText(one, value))).toEqual(value);
});

test("an empty list and an empty table are empty text", () => {
  expect(parseField(setting("a.b", "list"), "\n  \n")).toEqual([]);
  expect(parseField(setting("a.b", "table"), "")).toEqual({});
});

test("a table with numeric defaults takes numbers", () => {
  const days = setting("sessions.retention_days", "table", {}, { webhook: 7 });
  expect(parseField(days, "cron = 30")).toEqual({ cron: 30 });
  expect(() => parseField(days, "cron = soon")).toThrow(InvalidValue);
});

test("an invalid value says what is expected", () => {
  expect(() => parseField(setting("a.b", "number"), "")).toThrow(InvalidValue);
  expect(() => parseField(setting("a.b", "number"), "many")).toThrow(InvalidValue);
  expect(() => parseField(setting("a.b", "table"), "no divider")).toThrow("no divider");
});

test("tables are equal in any order, lists only in the same order", () => {
  expect(isEqual({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
  expect(isEqual([1, 2], [2, 1])).toBe(false);
  expect(isEqual(null, undefined)).toBe(true);
  expect(isEqual("1", 1)).toBe(false);
});

test("the most used sections come first, unknown ones last", () => {
  const items = ["server.port", "novel.thing", "tools.terminal.deny", "model.name"].map((key) => setting(key, "text"));
  expect(sections(items)).toEqual(["model", "tools", "server", "novel"]);
});

test("settings are grouped by their table in the file", () => {
  const items = ["tools.disabled", "tools.terminal.deny", "tools.terminal.timeout"].map((key) => setting(key, "text"));
  const groups = grouped(items).map(({ name, items }) => [name, items.length]);
  expect(groups).toEqual([
    ["tools", 1],
    ["tools.terminal", 2],
  ]);
});

test("a setting is found by words of its key and its description", () => {
  const items = [setting("gateway.busy", "choice"), setting("server.port", "number")];
  expect(searchSettings(items, "Busy MEANS").map(({ key }) => key)).toEqual(["gateway.busy"]);
  expect(searchSettings(items, "busy port")).toEqual([]);
});
