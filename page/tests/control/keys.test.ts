import { expect, test } from "vitest";
import { EMPTY, isFirst, isLast, isMissing, keyPlan } from "../../src/control/keys/form.tsx";
import type { KeyView } from "../../src/wire.ts";

const key = (id: string, scopes: string[], revoked_at: number | null = null): KeyView => ({
  id,
  name: id,
  owner: "local",
  scopes,
  prefix: "hf_x",
  rate_limit: 0,
  created_at: 0,
  revoked_at,
});

test("the first key is the first that grants API access", () => {
  const others = [key("hook", ["webhook:alerts"]), key("old", ["api"], 1)];
  expect(isFirst(others, ["api"])).toBe(true);
  expect(isFirst(others, ["admin"])).toBe(true);
  expect(isFirst(others, ["webhook:alerts"])).toBe(false);
  expect(isFirst([...others, key("laptop", ["admin"])], ["api"])).toBe(false);
});

test("the last key is the only one that grants API access", () => {
  const laptop = key("laptop", ["api"]);
  const hook = key("hook", ["webhook:alerts"]);
  expect(isLast([laptop, hook], laptop)).toBe(true);
  expect(isLast([laptop, hook], hook)).toBe(false);
  expect(isLast([laptop, key("ci", ["admin"])], laptop)).toBe(false);
});

test("a key leaves out fields of other permissions", () => {
  const form = { name: " laptop ", may: "api", route: "alerts", owner: "grace", rate: "12" } as const;
  expect(keyPlan(form)).toEqual({ name: "laptop", scopes: ["api"], owner: "grace", rate_limit: 12 });
  expect(keyPlan({ ...form, may: "admin" })).toMatchObject({ scopes: ["admin"], owner: "local" });
  expect(keyPlan({ ...form, may: "webhook", rate: "" })).toMatchObject({
    scopes: ["webhook:alerts"],
    owner: "local",
    rate_limit: 0,
  });
});

test("a key needs a name, and a webhook key a route", () => {
  expect([EMPTY, { ...EMPTY, name: "x" }].map(isMissing)).toEqual([true, false]);
  expect(isMissing({ ...EMPTY, name: "x", may: "webhook" })).toBe(true);
});
