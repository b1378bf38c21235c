/** Pictures for a message: which formats are accepted, and how a large one is scaled down. */

import { base64 } from "../bytes.ts";

export const PICTURES_MAX = 4;
export const PICTURE_BYTES_MAX = 5 * 1024 * 1024;
/** Models scale larger pictures down to this side length. */
const SIDE_MAX = 2_048;
const QUALITY = 0.86;
/** Each try draws it a bit smaller than should be necessary, so a few tries suffice. */
const TRIES_MAX = 4;
const MARGIN_FACTOR = 0.85;
const SIGNATURE_BYTES = 12;

export interface Picture {
  mediaType: string;
  data: string;
  /** It was scaled down. */
  shrunk: boolean;
}

/** Return the type of a picture, whatever its name says; null if the format is not accepted. */
export function mediaTypeOf(beginning: Uint8Array): string | null {
  const letters = String.fromCharCode(...beginning.subarray(0, SIGNATURE_BYTES));
  if (letters.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (letters.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(letters)) return "image/gif";
  return letters.startsWith("RIFF") && letters.endsWith("WEBP") ? "image/webp" : null;
}

/** Return the size to draw a picture in, so that its file becomes small enough. */
export function scaledSize(width: number, height: number, bytes: number): { width: number; height: number } {
  const byBytes = Math.sqrt((PICTURE_BYTES_MAX * MARGIN_FACTOR) / bytes);
  const scale = Math.min(1, byBytes, SIDE_MAX / Math.max(width, height));
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
}

/** Return a file as a picture; null if it is none.  Throws if it cannot be made small enough. */
export async function pictureIn(file: File): Promise<Picture | null> {
  const mediaType = mediaTypeOf(await bytesOf(file.slice(0, SIGNATURE_BYTES)));
  if (!mediaType) return null;
  if (file.size <= PICTURE_BYTES_MAX) return { mediaType, data: base64(await bytesOf(file)), shrunk: false };
  const fitting = await shrink(file);
  return { mediaType: fitting.type, data: base64(await bytesOf(fitting)), shrunk: true };
}

async function shrink(file: File): Promise<Blob> {
  const drawn = await createImageBitmap(file).catch(() => null);
  let { width, height } = drawn ?? { width: 0, height: 0 };
  let bytes = file.size;
  for (let tries = 0; drawn && tries < TRIES_MAX; tries++) {
    ({ width, height } = scaledSize(width, height, bytes));
    const blob = await draw(drawn, width, height);
    if (blob && blob.size <= PICTURE_BYTES_MAX) return blob;
    bytes = blob?.size ?? bytes * 2;
  }
  throw new Error(`${file.name} is too large for a picture, and could not be scaled down.`);
}

function draw(picture: ImageBitmap, width: number, height: number): Promise<Blob | null> {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  if (!context) return Promise.resolve(null);
  // Transparent pixels would become black in a JPEG.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
}

async function bytesOf(blob: Blob): Promise<Uint8Array> {
  return new Uint8Array(await blob.arrayBuffer());
}
