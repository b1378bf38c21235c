/** Files on their way to the workspace, where the agent reads them. */

import { query, refusal, Unanswered } from "../api.ts";
import { NONCE_HEADER, proof, TRIES, wantsAnother } from "../signing.ts";
import type { Upload } from "../wire.ts";

export const UPLOAD_BYTES_MAX = 20 * 1024 * 1024;
/** Longer than the gateway waits for a file. */
const PATIENCE_MS = 180_000;

/** Keep a file in the workspace. */
export async function upload(file: File, onShare: (share: number) => void, signal: AbortSignal): Promise<Upload> {
  for (let tries = 1; ; tries += 1) {
    const { status, response, nonce } = await sent(file, onShare, signal);
    if (status === 201) return response as Upload;
    if (tries === TRIES || !wantsAnother(nonce)) throw refusal(status, response);
  }
}

/** Only the older way of asking tells how far a file has come, so it is used for this alone. */
async function sent(file: File, onShare: (share: number) => void, signal: AbortSignal) {
  const path = `/api/uploads${query({ name: file.name })}`;
  const headers = await proof("POST", path, file);
  return new Promise<{ status: number; response: unknown; nonce: string | null }>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.timeout = PATIENCE_MS;
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = () => {
      const nonce = request.getResponseHeader(NONCE_HEADER);
      resolve({ status: request.status, response: request.response, nonce });
    };
    request.onerror = request.ontimeout = () => reject(new Unanswered());
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
