// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { commandIn, commandText, suggestions, takesMore } from "../../src/composer/commands.tsx";

const names = (text: string) => suggestions(text).map((each) => each.name);

test("a slash lists every command, and letters narrow the list", () => {
  expect(names("/")).toContain("compress");
  expect(names("/st")).toEqual(["stop", "status"]);
  expect(names("/ST")).toEqual(["stop", "status"]);
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
});
