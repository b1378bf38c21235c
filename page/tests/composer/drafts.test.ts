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
  before.writingIn("ses_a").text.value = "half a sentence";
  before.writingIn(null).text.value = "another";
  const after = await loaded();
  expect(after.writingIn("ses_a").text.value).toBe("half a sentence");
  expect(after.writingIn(null).text.value).toBe("another");
  expect(after.writingIn("ses_b").text.value).toBe("");
});

test("nothing is kept of what was sent", async () => {
  const { clear, writingIn } = await loaded();
  const writing = writingIn("ses_a");
  writing.text.value = "sent";
  clear(writing);
  expect(localStorage.length).toBe(0);
});

test("what is put into the field does not take what stands there", async () => {
  const { fill, writingIn } = await loaded();
  writingIn("ses_a").text.value = "mine";
  fill("ses_a", "theirs");
  expect(writingIn("ses_a").text.value).toBe("theirs\n\nmine");
});

test("whoever writes on while a session is opened goes on in it", async () => {
  const { moveInto, writingIn } = await loaded();
  const writing = writingIn(null);
  writing.text.value = "and an";
  moveInto("ses_a");
  writing.text.value = "and another thing";
  expect(writingIn(null).text.value).toBe("");
  expect((await loaded()).writingIn("ses_a").text.value).toBe("and another thing");
});

test("what is kept and cannot be read is no text", async () => {
  localStorage.setItem("holdfast.writing.ses_a", "{");
  expect((await loaded()).writingIn("ses_a").text.value).toBe("");
});
