// @vitest-environment happy-dom
import { expect, test } from "vitest";
import {
  commandIn,
  commandText,
  isComplete,
  needsConversation,
  suggestions,
  takesMore,
} from "../../src/composer/commands.tsx";

const names = (text: string) => suggestions(text).map((each) => each.name);

test("a slash lists every command, and letters narrow the list", () => {
  expect(names("/")).toContain("compress");
  expect(names("/st")).toEqual(["stop", "status", "steer"]);
  expect(names("/ST")).toEqual(["stop", "status", "steer"]);
});

test("a text that is no prefix of a command lists none", () => {
  for (const text of ["", "hello", "/etc/hosts", "/title a", " /stop", "/stop\n"]) expect(names(text)).toEqual([]);
});

test("a message is a command by its first word", () => {
  expect(commandIn("/title A day at sea")).toBe("title");
  expect(commandIn("  /Stop ")).toBe("stop");
  expect(commandIn("/stopped")).toBeNull();
  expect(commandIn("/home/person/notes.md")).toBeNull();
  expect(commandIn("say /stop")).toBeNull();
});

test("a command with an argument can be continued", () => {
  expect(commandText("title")).toBe("/title ");
  expect(takesMore("title")).toBe(true);
  expect(commandText("undo")).toBe("/undo");
  expect(takesMore("undo")).toBe(false);
});

test("a command is sent once it is complete", () => {
  expect(isComplete({ name: "undo", argument: "" }, "/un")).toBe(true);
  expect(isComplete({ name: "model", argument: "[NAME]" }, "/mod")).toBe(false);
  expect(isComplete({ name: "model", argument: "[NAME]" }, "/Model")).toBe(true);
  expect(isComplete({ name: "queue", argument: "TEXT" }, "/queue")).toBe(false);
});

test("what can be asked before the first message needs no conversation", () => {
  expect(needsConversation("undo")).toBe(true);
  expect(needsConversation("resume")).toBe(false);
  expect(needsConversation("model")).toBe(false);
});
