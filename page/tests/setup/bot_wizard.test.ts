// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { accountChanges, accountNames, BotWizard, freeName, nameProblem, tokenIn } from "../../src/setup/bot_wizard.ts";
import type { SettingsView, SettingView } from "../../src/wire.ts";

const TOKEN = "7000001:AAExampleTokenOfTheScriptedServer_0";

function settings(...keys: string[]): SettingsView {
  const items = keys.map(
    (key): SettingView => ({ key, value: "", default: "", source: "file", secret: false, doc: "", form: "text" }),
  );
  return { file: "holdfast.toml", revision: "r", items, restart_needed: false };
}

test("a token is found in the whole message of @BotFather", () => {
  const message = `Done! Congratulations on your new bot.\n\nUse this token to access the HTTP API:\n${TOKEN}\nKeep it secure.`;
  expect(tokenIn(message)).toBe(TOKEN);
  expect(tokenIn(`  ${TOKEN}\n`)).toBe(TOKEN);
  expect(tokenIn(" something else ")).toBe("something else");
});

test("accounts are known by their kind, and other channels are none", () => {
  const view = settings(
    "channels.telegram.kind",
    "channels.telegram.token",
    "channels.work.kind",
    "channels.url.secret",
  );
  expect(accountNames(view)).toEqual(["telegram", "work"]);
  expect(accountNames(null)).toEqual([]);
});

test("one more bot gets a name that is free", () => {
  expect(freeName([])).toBe("telegram");
  expect(freeName(["telegram", "telegram-2"])).toBe("telegram-3");
});

test("a name that is taken, or that no account can have, is refused", () => {
  expect(nameProblem("work", ["telegram"])).toBeUndefined();
  expect(nameProblem("telegram", ["telegram"])).toContain("already");
  for (const name of ["", "my bot", "a.b", "x".repeat(33)]) expect(nameProblem(name, [])).toBeDefined();
});

test("an account that is named like its platform needs no kind", () => {
  expect(accountChanges("telegram", { token: TOKEN })).toEqual({ "channels.telegram.token": TOKEN });
  expect(accountChanges("work", { token: TOKEN })).toEqual({
    "channels.work.kind": "telegram",
    "channels.work.token": TOKEN,
  });
});

test("a name that was taken meanwhile is not written over", async () => {
  let file = settings();
  globalThis.fetch = async (_, options) => {
    if (options?.method !== "PATCH") return Response.json(file);
    file = settings("channels.telegram.kind");
    return Response.json({ error: { code: "stale", message: "the file has changed" } }, { status: 409 });
  };
  const wizard = new BotWizard();
  wizard.settings.value = file;
  wizard.name.value = "telegram";
  wizard.token.value = TOKEN;
  await wizard.save();
  expect([wizard.step.value, wizard.problem.value !== undefined]).toEqual(["make", true]);
  expect(wizard.nameProblem.value).toContain("There is an account telegram already");
});
