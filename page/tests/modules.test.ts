// @vitest-environment happy-dom
import { expect, test } from "vitest";

/** main.tsx starts the page; everything else only defines. */
const modules = import.meta.glob(["../src/**/*.ts", "../src/**/*.tsx", "!../src/main.tsx"]);

test.each(Object.entries(modules))("%s can be loaded by itself", async (_, load) => {
  expect(await load()).toBeDefined();
});
