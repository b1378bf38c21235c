// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";

/** The page as it is after a reload: what is kept in the browser is all that it knows. */
const loaded = () => {
  vi.resetModules();
  return import("../../src/composer/drafts.ts");
};

beforeEach(() => localStorage.clear());

test("each session has a text of its own, which a reload does not take", async () => {
  const before = await loaded();
  before.draftOf("ses_a").text.value = "half a sentence";
  before.draftOf(null).text.value = "another";
  const after = await loaded();
  expect(after.draftOf("ses_a").text.value).toBe("half a sentence");
  expect(after.draftOf(null).text.value).toBe("another");
  expect(after.draftOf("ses_b").text.value).toBe("");
});

test("nothing is kept of what was sent", async () => {
  const { clearDraft, draftOf } = await loaded();
  const writing = draftOf("ses_a");
  writing.text.value = "sent";
  clearDraft(writing);
  expect(localStorage.length).toBe(0);
});

test("what is put into the field does not take what stands there", async () => {
  const { prefill, draftOf } = await loaded();
  draftOf("ses_a").text.value = "mine";
  prefill("ses_a", "theirs");
  expect(draftOf("ses_a").text.value).toBe("theirs\n\nmine");
});

test("whoever writes on while a session is opened goes on in it", async () => {
  const { moveDraft, draftOf } = await loaded();
  const writing = draftOf(null);
  writing.text.value = "and an";
  moveDraft("ses_a");
  writing.text.value = "and another thing";
  expect(draftOf(null).text.value).toBe("");
  expect((await loaded()).draftOf("ses_a").text.value).toBe("and another thing");
});

test("what is kept and cannot be read is no text", async () => {
  localStorage.setItem("holdfast.writing.ses_a", "{");
  expect((await loaded()).draftOf("ses_a").text.value).toBe("");
});
