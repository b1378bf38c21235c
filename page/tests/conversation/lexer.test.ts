import { describe, expect, it } from "vitest";
import { languageOf } from "../../src/conversation/markdown/code.tsx";
import { decodeReferences, linkTarget, parseMarkdown, pictureSource } from "../../src/conversation/markdown/lexer.ts";

describe("Markdown that is meant to block the page", () => {
  it.each([
    ["too long", "word ".repeat(7_000)],
    ["too tangled", "_a".repeat(5_000)],
    ["nested too deeply", "> ".repeat(1_900)],
    ["nested too deeply to be drawn", "> ".repeat(900)],
    ["a list in lists without end", "1. ".repeat(900)],
    ["too tangled below a fence", `\`\`\`\n\`\`\`\n${"![".repeat(5_000)}`],
  ])("is shown as it is where it is %s", (_, text) => {
    expect(parseMarkdown(text)).toBe(null);
  });

  it("may be nested as deeply as people write it", () => {
    const list = Array.from({ length: 12 }, (_, level) => `${"  ".repeat(level)}- **a**`).join("\n");
    expect(parseMarkdown(list)).not.toBe(null);
  });

  it("may have any length if it is code", () => {
    const tokens = parseMarkdown(`\`\`\`\n${"_a".repeat(50_000)}\n\`\`\``);
    expect(tokens?.map((token) => token.type)).toEqual(["code"]);
  });
});

describe("links and pictures in Markdown", () => {
  it.each([
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "/api/me",
    "blob:x",
  ])("never follows %j", (href) => {
    expect(linkTarget(href)).toBe(null);
  });

  it("follows ordinary links", () => {
    expect(linkTarget("https://example.org/a?b=c")).toBe("https://example.org/a?b=c");
    expect(linkTarget("mailto:someone@example.org")).toBe("mailto:someone@example.org");
  });

  it("draws no picture from a third party", () => {
    expect(pictureSource("https://example.org/a.png")).toBe(null);
    expect(pictureSource("//example.org/a.png")).toBe(null);
    expect(pictureSource("/api/../../x")).toBe(null);
    expect(pictureSource("/api/%2e%2e/x")).toBe(null);
    expect(pictureSource("/api/events")).toBe(null);
    expect(pictureSource("data:image/svg+xml;base64,AAAA")).toBe(null);
    expect(pictureSource("data:image/png;base64,AAAA")).toBe("data:image/png;base64,AAAA");
    expect(pictureSource("/api/turns/turn_1/images/0")).toBe("/api/turns/turn_1/images/0");
  });

  it("decodes character references once", () => {
    expect(decodeReferences("&lt;b&gt; &amp;lt; &#169; &#x1F600; &nope; &#0; &valueOf;")).toBe(
      "<b> &lt; © 😀 &nope; \ufffd &valueOf;",
    );
  });

  it.each(["constructor", "__proto__"])("has no language %j", (name) => {
    expect(languageOf(name).grammar).toBe(name);
    expect(typeof languageOf(name).label).toBe("string");
  });
});
