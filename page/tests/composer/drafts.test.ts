// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

/** The page after a reload, with nothing but the browser's storage. */
const loaded = () => {
  vi.resetModules();
  return import("../../src/composer/drafts.ts");
};

beforeEach(() => localStorage.clear());

test("each session has its own draft, which survives a reload", async () => {
  const before = await loaded();
  before.draftOf("ses_a").text.value = "half a sentence";
  before.draftOf(null).text.value = "another";
  const after = await loaded();
  expect(after.draftOf("ses_a").text.value).toBe("half a sentence");
  expect(after.draftOf(null).text.value).toBe("another");
  expect(after.draftOf("ses_b").text.value).toBe("");
});

test("a sent draft is cleared", async () => {
  const { clearDraft, draftOf } = await loaded();
  const writing = draftOf("ses_a");
  writing.text.value = "sent";
  clearDraft(writing);
  expect(localStorage.length).toBe(0);
});

test("a prefilled text keeps what is already in the field", async () => {
  const { prefill, draftOf } = await loaded();
  draftOf("ses_a").text.value = "mine";
  prefill("ses_a", "theirs");
  expect(draftOf("ses_a").text.value).toBe("theirs\n\nmine");
});

test("a draft moves into the session once it is open", async () => {
  const { moveDraft, draftOf } = await loaded();
  const writing = draftOf(null);
  writing.text.value = "and an";
  moveDraft("ses_a");
  writing.text.value = "and another thing";
  expect(draftOf(null).text.value).toBe("");
  expect((await loaded()).draftOf("ses_a").text.value).toBe("and another thing");
});

test("an unreadable stored draft is empty", async () => {
  localStorage.setItem("holdfast.writing.ses_a", "{");
  expect((await loaded()).draftOf("ses_a").text.value).toBe("");
});
