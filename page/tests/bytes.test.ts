import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { hmac, sha256 } from "../src/bytes.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const some = (length: number) => Uint8Array.from({ length }, (_, place) => (place * 167 + length) % 256);

test("digests match the standard, whatever the length of the text", () => {
  for (const length of [0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 1_000, 100_000]) {
    expect(hex(sha256(some(length)))).toBe(createHash("sha256").update(some(length)).digest("hex"));
  }
});

test("HMACs match the standard, even with a key longer than a block", () => {
  for (const length of [0, 43, 64, 65, 200]) {
    const wanted = createHmac("sha256", some(length)).update("what is asked").digest("hex");
    expect(hex(hmac(some(length), new TextEncoder().encode("what is asked")))).toBe(wanted);
  }
});
