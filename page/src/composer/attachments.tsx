/** Attachments: chosen, pasted or dropped.  Pictures go with the message, other files are uploaded to the workspace. */

import { useEffect, useState } from "preact/hooks";
import { errorText, query, refusedFrom, Unanswered } from "../api.ts";
import { bytes, count, percent } from "../format.ts";
import { NONCE_HEADER, proof, TRIES, takeNonce } from "../signing.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { showError, showToast } from "../ui/toast.tsx";
import type { Upload } from "../wire.ts";
import { type Attachment, attachmentId, type Draft, type FileAttachment, type PictureAttachment } from "./drafts.ts";
import { PICTURES_MAX, type Picture, pictureIn } from "./pictures.ts";
import { PASTE_LONG, withoutPasted } from "./sending.ts";

/** The attachments of a draft. */
export function Attachments({ draft }: { draft: Draft }) {
  const attachments = draft.attachments.value;
  if (!attachments.length) return null;
  return (
    <ul class="attachments" aria-label="Attachments">
      {attachments.map((each) => (
        <li key={each.id} class={`attached-${each.kind}`}>
          {each.kind === "picture" ? <PicturePreview picture={each} /> : <FilePreview file={each} />}
          <IconButton icon="close" size={14} label={`Remove ${each.name}`} onClick={() => detach(draft, each)} />
        </li>
      ))}
    </ul>
  );
}

function PicturePreview({ picture }: { picture: PictureAttachment }) {
  return <img src={`data:${picture.mediaType};base64,${picture.data}`} alt={picture.name} title={picture.name} />;
}

function FilePreview({ file }: { file: FileAttachment }) {
  return (
    <>
      <Icon name={file.problem ? "warning" : "file"} />
      <div class="file-text">
        <span class="file-name" title={file.name}>
          {file.name}
        </span>
        <span class={file.problem ? "file-more bad" : "file-more"} role={file.problem ? "alert" : undefined}>
          {progressText(file)}
        </span>
        {isUploading(file) && <progress value={file.share} aria-label={`Sending ${file.name}`} />}
      </div>
      {file.problem && <IconButton icon="retry" size={15} label={`Send ${file.name} again`} onClick={file.retry} />}
    </>
  );
}

function progressText(file: FileAttachment): string {
  return file.problem || (isUploading(file) ? `${percent(file.share)} of ${bytes(file.bytes)}` : bytes(file.bytes));
}

const isUploading = (each: Attachment) => each.kind === "file" && each.path === null && !each.problem;

export async function attach(draft: Draft, files: readonly File[]): Promise<void> {
  for (const file of files) {
    try {
      const picture = await pictureIn(file);
      if (picture) attachPicture(draft, file.name, picture);
      else attachFile(draft, file);
    } catch (error) {
      showError(error);
    }
  }
}

function detach(draft: Draft, attachment: Attachment): void {
  if (attachment.kind === "file") attachment.cancel();
  draft.attachments.value = draft.attachments.value.filter((each) => each.id !== attachment.id);
}

/** Return a picture of an earlier message as an attachment of a new one. */
export function reattachedPicture(image: { media_type: string; data: string; name: string }): PictureAttachment {
  return { kind: "picture", id: attachmentId(), name: image.name, mediaType: image.media_type, data: image.data };
}

function attachPicture(draft: Draft, name: string, { mediaType, data, shrunk }: Picture): void {
  const pictures = draft.attachments.value.filter((each) => each.kind === "picture").length;
  if (pictures >= PICTURES_MAX) {
    showToast(`A message can have up to ${PICTURES_MAX} pictures. Send ${name} with the next one.`, { bad: true });
    return;
  }
  if (shrunk) showToast(`${name} was scaled down to fit into a message.`);
  addAttachment(draft, { kind: "picture", id: attachmentId(), name, mediaType, data });
}

function attachFile(draft: Draft, file: File): void {
  if (file.size > UPLOAD_BYTES_MAX) {
    showToast(`${file.name} is too large: ${bytes(file.size)}. The limit is ${bytes(UPLOAD_BYTES_MAX)}.`, {
      bad: true,
    });
    return;
  }
  const id = attachmentId();
  const ending = new AbortController();
  const change = (changes: Partial<FileAttachment>) => updateAttachment(draft, id, changes);
  const again = () => sendFile(file, change, ending.signal);
  const drop = () => ending.abort();
  const { name, size } = file;
  addAttachment(draft, {
    kind: "file",
    id,
    name,
    bytes: size,
    share: 0,
    path: null,
    problem: "",
    retry: again,
    cancel: drop,
  });
  again();
}

async function sendFile(file: File, change: (changes: Partial<FileAttachment>) => void, signal: AbortSignal) {
  change({ problem: "", share: 0 });
  try {
    const { path } = await upload(file, (share) => change({ share }), signal);
    change({ path, share: 1 });
  } catch (error) {
    change({ problem: errorText(error) });
  }
}

function addAttachment(draft: Draft, attachment: Attachment): void {
  draft.attachments.value = [...draft.attachments.value, attachment];
}

function updateAttachment(draft: Draft, id: number, changes: Partial<FileAttachment>): void {
  draft.attachments.value = draft.attachments.value.map((each) =>
    each.id === id && each.kind === "file" ? { ...each, ...changes } : each,
  );
}

const UPLOAD_BYTES_MAX = 20 * 1024 * 1024;
/** Longer than the gateway waits for a file. */
const UPLOAD_TIMEOUT_MS = 180_000;

/** Upload a file to the workspace. */
async function upload(file: File, onShare: (share: number) => void, signal: AbortSignal): Promise<Upload> {
  for (let tries = 1; ; tries += 1) {
    const { status, response, nonce } = await sendUpload(file, onShare, signal);
    if (status === 201) return response as Upload;
    if (tries === TRIES || !takeNonce(nonce)) throw refusedFrom(status, response);
  }
}

/** Only XMLHttpRequest reports the progress of an upload. */
async function sendUpload(file: File, onShare: (share: number) => void, signal: AbortSignal) {
  const path = `/api/uploads${query({ name: file.name })}`;
  const headers = await proof("POST", path, file);
  return new Promise<{ status: number; response: unknown; nonce: string | null }>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.timeout = UPLOAD_TIMEOUT_MS;
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

const NAME = "pasted.txt";

/** Return the files that were pasted if no text came with them, else the text if it is long. */
export function pasted(event: ClipboardEvent): { files: readonly File[]; long: string } {
  const text = event.clipboardData?.getData("text/plain").replaceAll("\r\n", "\n") ?? "";
  const files = text ? [] : [...(event.clipboardData?.files ?? [])];
  return { files, long: text.length > PASTE_LONG ? text : "" };
}

/** Offers to attach a long pasted text as a file. */
export function PasteOffer({ draft, text, onDone }: { draft: Draft; text: string; onDone: () => void }) {
  const move = () => {
    draft.text.value = withoutPasted(draft.text.value, text);
    attach(draft, [new File([text], NAME, { type: "text/plain" })]);
    onDone();
  };
  return (
    <div class="paste-offer" role="status">
      <span>You pasted {count(text.length)} characters.</span>
      <Button small icon="attach" onClick={move}>
        Attach as a file
      </Button>
      <IconButton icon="close" size={14} label="Keep in the message" onClick={onDone} />
    </div>
  );
}

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** Accept files that are dropped anywhere on the page.  Returns whether files are being dragged over it. */
export function useFileDrop(onFiles: (files: readonly File[]) => void): boolean {
  const [dragging, setHeld] = useState(false);
  useEffect(() => {
    const ending = new AbortController();
    const listen = (name: "dragover" | "dragleave" | "drop", act: (event: DragEvent) => void) =>
      document.addEventListener(name, (event) => holdsFiles(event) && act(event), { signal: ending.signal });
    listen("dragover", (event) => {
      event.preventDefault();
      setHeld(true);
    });
    // Moving from one element to another does not leave the page.
    listen("dragleave", (event) => event.relatedTarget === null && setHeld(false));
    listen("drop", (event) => {
      event.preventDefault();
      setHeld(false);
      onFiles([...(event.dataTransfer?.files ?? [])]);
    });
    return () => ending.abort();
  }, [onFiles]);
  return dragging;
}
