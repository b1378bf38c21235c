// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { intentOf, recalledText } from "../../src/composer/keyboard.ts";

const plain = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, isComposing: false, keyCode: 0 };
const desk = { listed: false, touched: false };

test("Enter sends, and Shift+Enter breaks the line", () => {
  expect(intentOf({ ...plain, key: "Enter" }, desk)).toBe("send");
  expect(intentOf({ ...plain, key: "Enter", shiftKey: true }, desk)).toBeNull();
  expect(intentOf({ ...plain, key: "Enter" }, { ...desk, touched: true })).toBeNull();
});

test("the Enter that ends a composed word sends nothing", () => {
  expect(intentOf({ ...plain, key: "Enter", isComposing: true }, desk)).toBeNull();
  expect(intentOf({ ...plain, key: "Enter", keyCode: 229 }, desk)).toBeNull();
});

test("Ctrl+Enter or Cmd+Enter steers, with or without the command menu", () => {
  expect(intentOf({ ...plain, key: "Enter", ctrlKey: true }, desk)).toBe("steer");
  expect(intentOf({ ...plain, key: "Enter", metaKey: true }, { listed: true, touched: true })).toBe("steer");
  expect(intentOf({ ...plain, key: "k", ctrlKey: true }, desk)).toBeNull();
});

test("the command menu takes the keys while it is open", () => {
  const listed = { listed: true, touched: true };
  const keys = ["ArrowDown", "ArrowUp", "Enter", "Tab", "Escape", "a"];
  expect(keys.map((key) => intentOf({ ...plain, key }, listed))).toEqual([
    "next",
    "previous",
    "choose",
    "complete",
    "close",
    null,
  ]);
});

test("Escape stops the turn, unless it closes the menu or cancels a composed word", () => {
  expect(intentOf({ ...plain, key: "Escape" }, desk)).toBe("stop");
  expect(intentOf({ ...plain, key: "Escape" }, { ...desk, listed: true })).toBe("close");
  expect(intentOf({ ...plain, key: "Escape", isComposing: true }, desk)).toBeNull();
});

test("the arrows go through earlier messages and back to the empty field", () => {
  const asked = ["third", "second", "first"];
  expect(recalledText(asked, "", "older")).toBe("third");
  expect(recalledText(asked, "third", "older")).toBe("second");
  expect(recalledText(asked, "first", "older")).toBeNull();
  expect(recalledText(asked, "second", "newer")).toBe("third");
  expect(recalledText(asked, "third", "newer")).toBe("");
  expect(recalledText(asked, "", "newer")).toBeNull();
});

test("the arrows never replace a draft", () => {
  expect(recalledText(["asked"], "something new", "older")).toBeNull();
  expect(recalledText([], "", "older")).toBeNull();
});
