import { describe, expect, it } from "vitest";
import { drawn, linked } from "../../src/conversation/markdown/destinations.ts";
import { decoded } from "../../src/conversation/markdown/entities.ts";
import { languageOf } from "../../src/conversation/markdown/languages.ts";

describe("where Markdown may lead", () => {
  it.each([
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "/api/me",
    "blob:x",
  ])("never follows %j", (href) => {
    expect(linked(href)).toBe(null);
  });

  it("follows ordinary links", () => {
    expect(linked("https://example.org/a?b=c")).toBe("https://example.org/a?b=c");
    expect(linked("mailto:someone@example.org")).toBe("mailto:someone@example.org");
  });

  it("draws no picture that somebody else would have to be asked for", () => {
    expect(drawn("https://example.org/a.png")).toBe(null);
    expect(drawn("//example.org/a.png")).toBe(null);
    expect(drawn("/api/../../x")).toBe(null);
    expect(drawn("/api/%2e%2e/x")).toBe(null);
    expect(drawn("/api/events")).toBe(null);
    expect(drawn("data:image/svg+xml;base64,AAAA")).toBe(null);
    expect(drawn("data:image/png;base64,AAAA")).toBe("data:image/png;base64,AAAA");
    expect(drawn("/api/turns/turn_1/images/0")).toBe("/api/turns/turn_1/images/0");
  });

  it("reads character references once", () => {
    expect(decoded("&lt;b&gt; &amp;lt; &#169; &#x1F600; &nope; &#0; &valueOf;")).toBe(
      "<b> &lt; © 😀 &nope; \ufffd &valueOf;",
    );
  });

  it.each(["constructor", "__proto__"])("knows no language %j that nobody has named", (name) => {
    expect(languageOf(name).grammar).toBe(name);
    expect(typeof languageOf(name).label).toBe("string");
  });
});
