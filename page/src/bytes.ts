/**
 * Bytes: base64 and random keys, and SHA-256 with HMAC for pages whose browser offers neither.
 *
 * Browsers offer `crypto.subtle` and random ids only to pages that came by TLS or from this machine.
 */

const BLOCK = 64;
const ROUNDS = 64;

/**
 * Return the first 32 bits of the fractional parts of roots of primes: `power` is 1/2 for the state, 1/3 for the
 * rounds.
 */
function fractions(count: number, power: number): Uint32Array {
  const primes: number[] = [];
  for (let each = 2; primes.length < count; each += 1) if (primes.every((prime) => each % prime)) primes.push(each);
  return Uint32Array.from(primes, (prime) => (prime ** power % 1) * 2 ** 32);
}

const STATE = fractions(8, 1 / 2);
const CONSTANTS = fractions(ROUNDS, 1 / 3);

const rotatedRight = (word: number, by: number) => (word >>> by) | (word << (32 - by));

/** Return the SHA-256 digest of some bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK) * BLOCK);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = STATE.slice();
  const words = new Uint32Array(ROUNDS);
  for (let at = 0; at < padded.length; at += BLOCK) mix(state, words, view, at);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, place) => void digest.setUint32(place * 4, word));
  return new Uint8Array(digest.buffer);
}

function mix(state: Uint32Array, words: Uint32Array, view: DataView, at: number): void {
  for (let i = 0; i < 16; i += 1) words[i] = view.getUint32(at + i * 4);
  for (let i = 16; i < ROUNDS; i += 1) {
    const [early, late] = [words[i - 15]!, words[i - 2]!];
    const low = rotatedRight(early, 7) ^ rotatedRight(early, 18) ^ (early >>> 3);
    const high = rotatedRight(late, 17) ^ rotatedRight(late, 19) ^ (late >>> 10);
    words[i] = words[i - 16]! + low + words[i - 7]! + high;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < ROUNDS; i += 1) {
    const upper = rotatedRight(e, 6) ^ rotatedRight(e, 11) ^ rotatedRight(e, 25);
    const first = (h + upper + ((e & f) ^ (~e & g)) + CONSTANTS[i]! + words[i]!) | 0;
    const lower = rotatedRight(a, 2) ^ rotatedRight(a, 13) ^ rotatedRight(a, 22);
    const second = (lower + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, place) => {
    state[place]! += word;
  });
}

/** Return the HMAC of some bytes under a key. */
export function hmac(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK);
  block.set(key.length > BLOCK ? sha256(key) : key);
  const under = (pad: number, rest: Uint8Array) =>
    sha256(new Uint8Array([...block.map((each) => each ^ pad), ...rest]));
  return under(0x5c, under(0x36, bytes));
}

/** `String.fromCharCode` takes no more arguments than this. */
const CHUNK = 0x8000;

export function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(binary);
}

const BYTES = 16;

/** Return a new random key. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
}
