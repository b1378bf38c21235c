// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { chatOf, originOf, sourceLines } from "../../src/sessions/labels.tsx";
import { session, UNSAID } from "./session.ts";

test("a source has one line for each known field", () => {
  const source = { ...UNSAID, chat_id: "webhook:alerts:d1", chat_name: "webhook/alerts", user_id: "webhook:alerts" };
  expect(sourceLines(source)).toEqual([
    "Chat: webhook/alerts",
    "Chat id: webhook:alerts:d1",
    "User id: webhook:alerts",
  ]);
  expect(sourceLines(UNSAID)).toEqual([]);
});

const chat = (type: string, name: string | null, more = {}) =>
  session({ channel: "telegram", source: { ...UNSAID, chat_type: type, chat_name: name }, ...more });

test("a group is told from a private chat", () => {
  expect(originOf(chat("private", "Ann"))).toEqual({ name: "Telegram", icon: "plane" });
  expect(originOf(chat("group", "Crew"))).toEqual({ name: "Telegram group", icon: "people" });
  expect(originOf(chat("private", "Ann", { channel: "work" }))).toEqual({ name: "Work", icon: "chat" });
  expect(originOf(session({ channel: "webhook" }))).toEqual({ name: "Webhook", icon: "webhook" });
});

test("a chat is named beside the title of its session, by the person if it has no name", () => {
  expect(chatOf(chat("group", "Crew", { label: "Ann: hello" }))).toBe("Crew");
  expect(chatOf(chat("group", "Crew", { label: "Crew" }))).toBe("");
  expect(chatOf(session({ source: { ...UNSAID, chat_type: "private", user_name: "Ann" } }))).toBe("Ann");
  expect(chatOf(chat("webhook", "webhook/alerts"))).toBe("");
});
