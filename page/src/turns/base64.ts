/** Bytes as text, for messages that carry pictures. */

/** More arguments than this are too many for one call. */
const CHUNK = 0x8000;

export function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(binary);
}
