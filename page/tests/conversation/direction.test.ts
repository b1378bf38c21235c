// @vitest-environment happy-dom
import { h, render } from "preact";
import { expect, it } from "vitest";
import { Markdown } from "../../src/conversation/markdown/markdown.tsx";

it("an answer has the direction of its own text", () => {
  const place = document.createElement("div");
  render(h(Markdown, { text: "- שלום" }), place);
  expect(place.querySelector("ul")?.closest("[dir]")?.getAttribute("dir")).toBe("auto");
});
