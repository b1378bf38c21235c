// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { loadsAnotherScript } from "../src/page_updates.ts";

const loading = (script: string) => `<!doctype html><script type="module" src="${script}"></script>`;

test("a page is outdated when the gateway serves another script, not when an answer is truncated or foreign", () => {
  expect(loadsAnotherScript(loading("/assets/index-2.js"), "/assets/index-1.js")).toBe(true);
  expect(loadsAnotherScript(loading("/assets/index-1.js"), "/assets/index-1.js")).toBe(false);
  expect(loadsAnotherScript("", "/assets/index-1.js")).toBe(false);
  expect(loadsAnotherScript("<h1>Welcome to the train</h1>", "/assets/index-1.js")).toBe(false);
});
