/** Files on their way to the workspace, where the agent reads them. */

import { credentials, query, Refused, SIGNED_OUT, Unanswered } from "../api.ts";
import type { Error as Problem, Upload } from "../wire.ts";

export const UPLOAD_BYTES_MAX = 20 * 1024 * 1024;

/** Keep a file in the workspace.  Only the older way of asking tells how far it has come, so it is used for this alone. */
export function upload(file: File, onShare: (share: number) => void, signal: AbortSignal): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads${query({ name: file.name })}`);
    for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && onShare(event.loaded / event.total);
    request.onload = () => (request.status === 201 ? resolve(request.response) : reject(refusal(request)));
    request.onerror = () => reject(new Unanswered());
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function refusal(request: XMLHttpRequest): Refused {
  if (request.status === 401) dispatchEvent(new Event(SIGNED_OUT));
  const answer = request.response as { error?: Partial<Problem> } | null;
  return new Refused(request.status, answer?.error);
}
