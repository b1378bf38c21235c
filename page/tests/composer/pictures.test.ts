import fc from "fast-check";
import { expect, test } from "vitest";
import { mediaTypeOf, PICTURE_BYTES_MAX, scaledSize } from "../../src/composer/pictures.ts";

const bytes = (...parts: (string | number)[]) =>
  new Uint8Array(
    parts.flatMap((each) => (typeof each === "string" ? [...each].map((one) => one.charCodeAt(0)) : each)),
  );

test("a picture is recognised by its first bytes, whatever its name", () => {
  expect(mediaTypeOf(bytes(0x89, "PNG\r\n", 0x1a, "\nIHDR"))).toBe("image/png");
  expect(mediaTypeOf(bytes(0xff, 0xd8, 0xff, 0xe0))).toBe("image/jpeg");
  expect(mediaTypeOf(bytes("GIF89a"))).toBe("image/gif");
  expect(mediaTypeOf(bytes("RIFF", 1, 2, 3, 4, "WEBPVP8 "))).toBe("image/webp");
  for (const other of ["<svg xmlns", "RIFF....WAVE", "GIF90a", ""]) expect(mediaTypeOf(bytes(other))).toBeNull();
});

test("a large picture is scaled down in proportion until it fits", () => {
  const side = fc.integer({ min: 1, max: 20_000 });
  fc.assert(
    fc.property(side, side, fc.integer({ min: PICTURE_BYTES_MAX + 1, max: 2 ** 31 }), (width, height, size) => {
      const made = scaledSize(width, height, size);
      expect(Math.max(made.width, made.height)).toBeLessThanOrEqual(2_048);
      expect(Math.min(made.width, made.height)).toBeGreaterThanOrEqual(1);
      // Its area stays below the limit, unless it is one pixel wide.
      const fits = (made.width * made.height * size) / (width * height) <= PICTURE_BYTES_MAX;
      expect(fits || made.width === 1 || made.height === 1).toBe(true);
    }),
  );
});
