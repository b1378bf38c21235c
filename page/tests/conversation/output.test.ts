import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PLAIN, spans, withoutOverwritten } from "../../src/conversation/tools/output.tsx";

const ESC = "\u001b";

describe("the colours of a terminal", () => {
  it("last until they are changed", () => {
    expect(spans(`plain ${ESC}[1;31mred${ESC}[0m plain`)).toEqual([
      { ...PLAIN, text: "plain " },
      { ...PLAIN, text: "red", colour: "red", bold: true },
      { ...PLAIN, text: " plain" },
    ]);
    expect(spans(`${ESC}[92ma${ESC}[39;4mb`).map(({ colour, underline }) => [colour, underline])).toEqual([
      ["green", false],
      [null, true],
    ]);
  });

  it("are reduced to eight, and greys to none", () => {
    const colour = (code: string) => spans(`${ESC}[${code}mx`)[0]?.colour;
    expect(colour("38;5;196")).toBe("red");
    expect(colour("38;2;20;200;40")).toBe("green");
    expect(colour("38;5;244")).toBe(null);
    expect(colour("48;5;196;34")).toBe("blue");
  });

  it("leave no part of a sequence in the text", () => {
    const pieces = fc.constantFrom(
      "a",
      "b\n",
      `${ESC}[2K`,
      `${ESC}]0;title\u0007`,
      `${ESC}[31m`,
      `${ESC}(B`,
      "\u0007",
      `${ESC}[?25l`,
    );
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const shown = spans(parts.join(""))
          .map((span) => span.text)
          .join("");
        expect(shown).toBe(parts.filter((part) => part === "a" || part === "b\n").join(""));
      }),
    );
  });

  it("show an overwritten line as it ended", () => {
    expect(withoutOverwritten("10 %\r50 %\r100 %\ndone\r\n")).toBe("100 %\ndone\n");
  });
});
