// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { rendererOf } from "../../src/conversation/tools/registry.tsx";
import type { CallItem } from "../../src/journal/view.ts";

const TOOLS = [
  "edit_file",
  "fetch",
  "keep_note",
  "memory",
  "process",
  "send_message",
  "skill",
  "web_search",
  "write_file",
];
const ACTIONS = ["add", "kill", "list", "remove", "replace", "wait", "write"];

const failed = (name: string, action: string): CallItem => ({
  key: "1",
  callId: "1",
  recovered: false,
  role: "tool",
  at: 0,
  name,
  args: { action },
  outcome: "error",
  result: "it is not allowed",
  endedAt: 1,
});

describe("the name of a call", () => {
  it("never claims success for a failed call", () => {
    const names = TOOLS.flatMap((tool) => ACTIONS.map((action) => rendererOf(tool).name(failed(tool, action))));
    expect(names.filter((name) => /ed\b|^(?:Sent|Wrote|Forgot)\b/.test(name))).toEqual([]);
  });
});
