// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Attachment } from "../../src/composer/drafts.ts";
import { earlierMessages, messageContent, withoutPasted } from "../../src/composer/sending.ts";
import { message, turn } from "../turns/turns.ts";

const nothing = () => {};
const picture: Attachment = { kind: "picture", id: 1, name: "sea.png", mediaType: "image/png", data: "AAAA" };
const file: Attachment = {
  kind: "file",
  id: 2,
  name: "report.csv",
  bytes: 3,
  share: 1,
  path: "uploads/0a1b2c3d-report.csv",
  problem: "",
  retry: nothing,
  cancel: nothing,
};

test("files are listed below the text by their paths", () => {
  expect(messageContent(" Sum it up \n", [file]).text).toBe("Sum it up\n\nAttached: uploads/0a1b2c3d-report.csv");
});

test("a message of pictures alone lists their names", () => {
  expect(messageContent("", [picture])).toEqual({
    text: "Attached: sea.png",
    images: [{ media_type: "image/png", data: "AAAA", name: "sea.png" }],
  });
  expect(messageContent("", [picture, file]).text).toBe("Attached: uploads/0a1b2c3d-report.csv");
});

test("only the last pasted text is removed", () => {
  expect(withoutPasted("a long a long b", "a long")).toBe("a long  b");
  expect(withoutPasted("changed since", "a long")).toBe("changed since");
});

test("earlier messages are listed once each, newest first, including joined ones", () => {
  const turns = [
    turn("a", "completed", [message("hello"), message("and more")]),
    turn("b", "failed", [message("hello")]),
  ];
  expect(earlierMessages(turns)).toEqual(["hello", "and more"]);
});
