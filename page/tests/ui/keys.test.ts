// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { isPressed, isTyping } from "../../src/ui/keys.tsx";

const press = (key: string, held: KeyboardEventInit = {}) => new KeyboardEvent("keydown", { key, ...held });

test("a combination needs exactly its keys", () => {
  expect(isPressed("mod+k", press("k", { ctrlKey: true }))).toBe(true);
  expect(isPressed("mod+k", press("k"))).toBe(false);
  expect(isPressed("mod+k", press("k", { ctrlKey: true, shiftKey: true }))).toBe(false);
  expect(isPressed("mod+k", press("k", { ctrlKey: true, altKey: true }))).toBe(false);
  expect(isPressed("mod+shift+o", press("O", { ctrlKey: true, shiftKey: true }))).toBe(true);
  expect(isPressed("alt+arrowup", press("ArrowUp", { altKey: true }))).toBe(true);
});

test("a sign counts with and without Shift", () => {
  expect(isPressed("?", press("?", { shiftKey: true }))).toBe(true);
  expect(isPressed("/", press("/"))).toBe(true);
  expect(isPressed("/", press("/", { shiftKey: true }))).toBe(true);
});

test("a letter in a text field is no shortcut", () => {
  const checkbox = Object.assign(document.createElement("input"), { type: "checkbox" });
  expect(isTyping(document.createElement("textarea"))).toBe(true);
  expect(isTyping(document.createElement("input"))).toBe(true);
  expect(isTyping(checkbox)).toBe(false);
  expect(isTyping(document.body)).toBe(false);
});
