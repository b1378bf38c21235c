// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { sourceLines } from "../../src/sessions/labels.tsx";
import { UNSAID } from "./session.ts";

test("a source has one line for each known field", () => {
  const source = { ...UNSAID, chat_id: "webhook:alerts:d1", chat_name: "webhook/alerts", user_id: "webhook:alerts" };
  expect(sourceLines(source)).toEqual([
    "Chat: webhook/alerts",
    "Chat id: webhook:alerts:d1",
    "User id: webhook:alerts",
  ]);
  expect(sourceLines(UNSAID)).toEqual([]);
});
