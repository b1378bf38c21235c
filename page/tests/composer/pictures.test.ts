import fc from "fast-check";
import { expect, test } from "vitest";
import { mediaTypeOf, PICTURE_BYTES_MAX, smaller } from "../../src/composer/pictures.ts";

const bytes = (...parts: (string | number)[]) =>
  new Uint8Array(
    parts.flatMap((each) => (typeof each === "string" ? [...each].map((one) => one.charCodeAt(0)) : each)),
  );

test("a picture is known by how it begins, whatever it is called", () => {
  expect(mediaTypeOf(bytes(0x89, "PNG\r\n", 0x1a, "\nIHDR"))).toBe("image/png");
  expect(mediaTypeOf(bytes(0xff, 0xd8, 0xff, 0xe0))).toBe("image/jpeg");
  expect(mediaTypeOf(bytes("GIF89a"))).toBe("image/gif");
  expect(mediaTypeOf(bytes("RIFF", 1, 2, 3, 4, "WEBPVP8 "))).toBe("image/webp");
  for (const other of ["<svg xmlns", "RIFF....WAVE", "GIF90a", ""]) expect(mediaTypeOf(bytes(other))).toBeNull();
});

test("a picture that is too large is drawn smaller, in its own shape, until it fits", () => {
  const side = fc.integer({ min: 1, max: 20_000 });
  fc.assert(
    fc.property(side, side, fc.integer({ min: PICTURE_BYTES_MAX + 1, max: 2 ** 31 }), (width, height, size) => {
      const made = smaller(width, height, size);
      expect(Math.max(made.width, made.height)).toBeLessThanOrEqual(2_048);
      expect(Math.min(made.width, made.height)).toBeGreaterThanOrEqual(1);
      // By its area it has room to spare, unless it is a line that cannot be thinner.
      const fits = (made.width * made.height * size) / (width * height) <= PICTURE_BYTES_MAX;
      expect(fits || made.width === 1 || made.height === 1).toBe(true);
    }),
  );
});
