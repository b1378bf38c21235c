// @vitest-environment happy-dom
import { render } from "preact";
import { expect, it } from "vitest";
import { Markdown } from "../../src/conversation/markdown/markdown.tsx";

it("limits how much of an endless answer is drawn", () => {
  const place = document.createElement("div");
  render(<Markdown text={`${"a".repeat(29_000)}\n\n`.repeat(100)} growing />, place);
  expect(place.textContent.length).toBeLessThan(310_000);
  expect(place.textContent).toContain("Show more");
});
