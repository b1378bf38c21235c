// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { commandIn, commandText, suggestions, takesMore } from "../../src/composer/commands.tsx";

const names = (text: string) => suggestions(text).map((each) => each.name);

test("a slash offers every command, and a letter those that begin with it", () => {
  expect(names("/")).toContain("compress");
  expect(names("/st")).toEqual(["stop", "status"]);
  expect(names("/ST")).toEqual(["stop", "status"]);
});

test("nothing is offered for what cannot become a command any more", () => {
  for (const text of ["", "hello", "/etc/hosts", "/title a", " /stop", "/stop\n"]) expect(names(text)).toEqual([]);
});

test("a message is a command by its first word", () => {
  expect(commandIn("/title A day at sea")).toBe("title");
  expect(commandIn("  /Stop ")).toBe("stop");
  expect(commandIn("/stopped")).toBeNull();
  expect(commandIn("/home/person/notes.md")).toBeNull();
  expect(commandIn("say /stop")).toBeNull();
});

test("whoever chooses a command that takes more can go on writing", () => {
  expect(commandText("title")).toBe("/title ");
  expect(takesMore("title")).toBe(true);
  expect(commandText("undo")).toBe("/undo");
});
