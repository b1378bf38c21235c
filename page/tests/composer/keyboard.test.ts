// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { intentOf, recalledText } from "../../src/composer/keyboard.ts";

const plain = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, isComposing: false, keyCode: 0 };
const desk = { listed: false, touched: false };

test("Enter sends, unless it is to break the line", () => {
  expect(intentOf({ ...plain, key: "Enter" }, desk)).toBe("send");
  expect(intentOf({ ...plain, key: "Enter", shiftKey: true }, desk)).toBeNull();
  expect(intentOf({ ...plain, key: "Enter" }, { ...desk, touched: true })).toBeNull();
});

test("the Enter that ends a word of several keystrokes sends nothing", () => {
  expect(intentOf({ ...plain, key: "Enter", isComposing: true }, desk)).toBeNull();
  expect(intentOf({ ...plain, key: "Enter", keyCode: 229 }, desk)).toBeNull();
});

test("with Ctrl or Cmd it steers, whether commands are offered or not", () => {
  expect(intentOf({ ...plain, key: "Enter", ctrlKey: true }, desk)).toBe("steer");
  expect(intentOf({ ...plain, key: "Enter", metaKey: true }, { listed: true, touched: true })).toBe("steer");
  expect(intentOf({ ...plain, key: "k", ctrlKey: true }, desk)).toBeNull();
});

test("while commands are offered the keys are theirs", () => {
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

test("Escape stops, unless it closes something or belongs to a word in the making", () => {
  expect(intentOf({ ...plain, key: "Escape" }, desk)).toBe("stop");
  expect(intentOf({ ...plain, key: "Escape" }, { ...desk, listed: true })).toBe("close");
  expect(intentOf({ ...plain, key: "Escape", isComposing: true }, desk)).toBeNull();
});

test("the arrows go through what was asked and back to an empty field", () => {
  const asked = ["third", "second", "first"];
  expect(recalledText(asked, "", "older")).toBe("third");
  expect(recalledText(asked, "third", "older")).toBe("second");
  expect(recalledText(asked, "first", "older")).toBeNull();
  expect(recalledText(asked, "second", "newer")).toBe("third");
  expect(recalledText(asked, "third", "newer")).toBe("");
  expect(recalledText(asked, "", "newer")).toBeNull();
});

test("the arrows never replace what somebody has written", () => {
  expect(recalledText(["asked"], "something new", "older")).toBeNull();
  expect(recalledText([], "", "older")).toBeNull();
});
