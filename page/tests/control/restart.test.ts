// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { stepOf } from "../../src/control/restart.tsx";
import type { Status } from "../../src/wire.ts";

const seen = (node: string, ready = true) => ({ node, ready }) as Status;
const gone = new Error("no answer");

test("a restart drains, is away, and is over when another node is ready", () => {
  expect(stepOf("old", { value: seen("old"), error: undefined })).toBe("draining");
  expect(stepOf("old", { value: seen("old"), error: gone })).toBe("away");
  expect(stepOf("old", { value: seen("new", false), error: undefined })).toBe("away");
  expect(stepOf("old", { value: seen("new"), error: gone })).toBe("away");
  expect(stepOf("old", { value: seen("new"), error: undefined })).toBe("back");
});
