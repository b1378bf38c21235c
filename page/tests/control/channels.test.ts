// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { accountStatus } from "../../src/control/channels/states.ts";
import type { ChannelView } from "../../src/wire.ts";

const account: ChannelView = {
  name: "work",
  kind: "telegram",
  enabled: true,
  state: "connected",
  last_receive_at: 0,
  problem: null,
  pending_deliveries: 0,
  bot_name: "Harbour",
  bot_url: "https://t.me/harbour_bot",
  home: null,
};

test("an account that works needs no advice", () => {
  expect(accountStatus(account)).toEqual({ text: "Connected", tone: "good", advice: "" });
  expect(accountStatus({ ...account, state: "connecting" }).advice).toBe("");
});

test("every other state says what to do", () => {
  for (const change of [
    { problem: "the platform has not answered for 300 seconds" },
    { state: "connecting", problem: "no answer" },
    { state: "taken" },
    { state: "refused" },
    { state: "stopped" },
    { state: "stopped", enabled: false },
  ] as const) {
    expect(accountStatus({ ...account, ...change }).advice).not.toBe("");
  }
});

test("an account that is connected and hears nothing is not called connected", () => {
  expect(accountStatus({ ...account, problem: "no answer" })).toMatchObject({ text: "No answer", tone: "busy" });
});

test("what is turned off names the setting of this account", () => {
  expect(accountStatus({ ...account, enabled: false }).advice).toContain("channels.work.enabled");
});
