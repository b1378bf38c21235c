/** Files on their way to the workspace, where the agent reads them. */

import { credentials, query, refusal, Unanswered } from "../api.ts";
import type { Upload } from "../wire.ts";

export const UPLOAD_BYTES_MAX = 20 * 1024 * 1024;
/** Longer than the gateway waits for a file. */
const PATIENCE_MS = 180_000;

/** Keep a file in the workspace.  Only the older way of asking tells how far it has come, so it is used for this alone. */
export function upload(file: File, onShare: (share: number) => void, signal: AbortSignal): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads${query({ name: file.name })}`);
    for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.timeout = PATIENCE_MS;
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = () =>
      request.status === 201 ? resolve(request.response) : reject(refusal(request.status, request.response));
    request.onerror = request.ontimeout = () => reject(new Unanswered());
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
