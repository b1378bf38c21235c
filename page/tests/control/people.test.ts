// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { decisionText, isConfigured, nameOf, ROLES } from "../../src/control/people/roles.ts";
import type { PairingView, PersonView } from "../../src/wire.ts";

const request: PairingView = {
  id: "pair_1",
  account: "telegram",
  user_id: "7",
  user_name: "Ann",
  asked_at: 0,
  expires_at: 3_600_000,
  message: "hello",
};
const person: PersonView = {
  person: "telegram:7",
  account: "telegram",
  user_id: "7",
  user_name: "Ann",
  role: "guest",
  owner: "telegram:7",
  approved_at: 1,
  last_seen_at: null,
};

test("a person without a name is called by the id", () => {
  expect(nameOf(person)).toBe("Ann");
  expect(nameOf({ ...person, user_name: "" })).toBe("7");
});

test("a person of the configuration was never approved", () => {
  expect(isConfigured(person)).toBe(false);
  expect(isConfigured({ ...person, approved_at: null })).toBe(true);
});

test("every decision has a text of its own that names the person", () => {
  const texts = [...ROLES, "deny" as const].map((decision) => decisionText(decision, request));
  for (const field of ["label", "title", "action", "meaning", "done"] as const) {
    expect(new Set(texts.map((text) => text[field])).size).toBe(texts.length);
  }
  expect(texts.every(({ title }) => title.includes("Ann"))).toBe(true);
});
