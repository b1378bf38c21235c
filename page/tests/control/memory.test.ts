// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { difference } from "../../src/control/memory/document.tsx";

const document = (...facts: string[]) =>
  ["# Memory", "", "## Facts", "", ...facts.map((fact) => `- ${fact}`), ""].join("\n");
const tea = "Drinks tea. <!-- mem_1 -->";
const coffee = "Drinks coffee. <!-- mem_1 -->";
const mate = "Drinks mate. <!-- mem_1 -->";
const lisbon = "Lives in Lisbon. <!-- mem_2 -->";

test("two unchanged documents have no difference", () => {
  expect(difference(document(tea), document(tea), document(tea))).toEqual({ added: [], removed: [], clashes: [] });
});

test("added and removed lines are shown without their ids", () => {
  const { added, removed } = difference(document(tea), document(lisbon), document(tea));
  expect(added).toEqual(["Lives in Lisbon."]);
  expect(removed).toEqual(["Drinks tea."]);
});

test("a line that both changed differently is a clash", () => {
  const clashes = [{ theirs: "Drinks coffee.", mine: "Drinks mate." }];
  expect(difference(document(tea), document(coffee), document(mate))).toEqual({ added: [], removed: [], clashes });
  expect(difference(document(tea), document(coffee), document(coffee)).clashes).toEqual([]);
});

test("a line that only one changed is no clash", () => {
  expect(difference(document(tea), document(coffee), document(tea)).clashes).toEqual([]);
  expect(difference(document(tea), document(tea, lisbon), document(mate)).clashes).toEqual([]);
});
