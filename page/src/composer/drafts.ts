/** Drafts: one per session, kept while another session is open; text and uploaded files survive a reload. */

import { effect, type Signal, signal } from "@preact/signals";
import { localStore } from "../browser.ts";
import type { Upload } from "../wire.ts";

export interface PictureAttachment {
  kind: "picture";
  id: number;
  name: string;
  mediaType: string;
  /** In base64, as it is sent. */
  data: string;
}

export interface FileAttachment {
  kind: "file";
  id: number;
  name: string;
  bytes: number;
  /** The progress of the upload, from 0 to 1. */
  share: number;
  /** The path in the workspace; null until the upload is complete. */
  path: string | null;
  problem: string;
  retry: () => void;
  cancel: () => void;
}

export type Attachment = PictureAttachment | FileAttachment;

export interface Draft {
  /** The name it is stored under. */
  name: Signal<string>;
  text: Signal<string>;
  attachments: Signal<readonly Attachment[]>;
  /** Counts requests for the focus. */
  focusRequests: Signal<number>;
}

interface StoredDraft {
  text: string;
  files: Upload[];
}

const PREFIX = "holdfast.writing.";
const NEW = "new";
const drafts = new Map<string, Draft>();
let lastId = 0;

export const attachmentId = () => ++lastId;

/** Return the draft of a session; without a session, the draft that begins one. */
export function draftOf(sessionId: string | null): Draft {
  const name = sessionId ?? NEW;
  const existing = drafts.get(name);
  if (existing) return existing;
  const draft = newDraft(name, readDraft(name));
  effect(() => writeDraft(draft.name.value, { text: draft.text.value, files: uploadedFiles(draft.attachments.value) }));
  drafts.set(name, draft);
  return draft;
}

/** Move the draft of a new session into that session once it is open. */
export function moveDraft(sessionId: string): void {
  const draft = drafts.get(NEW);
  if (!draft || drafts.has(sessionId)) return;
  drafts.delete(NEW);
  drafts.set(sessionId, draft);
  draft.name.value = sessionId;
  localStore.remove(PREFIX + NEW);
}

/** Put a text into the field of a session, before what is there, and focus the field. */
export function prefill(sessionId: string | null, text: string, attachments: readonly Attachment[] = []): void {
  const draft = draftOf(sessionId);
  draft.text.value = [text, draft.text.value.trim()].filter(Boolean).join("\n\n");
  draft.attachments.value = [...draft.attachments.value, ...attachments];
  draft.focusRequests.value += 1;
}

export function clearDraft(draft: Draft): void {
  draft.text.value = "";
  draft.attachments.value = [];
}

/** Delete the drafts of all sessions. */
export function clearAllDrafts(): void {
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStore.remove(name);
}

function newDraft(name: string, { text, files }: StoredDraft): Draft {
  const attachments = signal<readonly Attachment[]>(files.map(uploadedFile));
  return { name: signal(name), text: signal(text), attachments, focusRequests: signal(0) };
}

/** Return the attachment for a file that was uploaded before the page was loaded. */
function uploadedFile({ name, bytes, path }: Upload): FileAttachment {
  const nothing = () => {};
  return {
    kind: "file",
    id: attachmentId(),
    name,
    bytes,
    share: 1,
    path,
    problem: "",
    retry: nothing,
    cancel: nothing,
  };
}

function uploadedFiles(attachments: readonly Attachment[]): Upload[] {
  return attachments.flatMap((each) =>
    each.kind === "file" && each.path ? [{ name: each.name, bytes: each.bytes, path: each.path }] : [],
  );
}

function readDraft(name: string): StoredDraft {
  const nothing: StoredDraft = { text: "", files: [] };
  try {
    return { ...nothing, ...JSON.parse(localStore.get(PREFIX + name) ?? "{}") };
  } catch {
    return nothing;
  }
}

function writeDraft(name: string, stored: StoredDraft): void {
  if (stored.text || stored.files.length) localStore.set(PREFIX + name, JSON.stringify(stored));
  else localStore.remove(PREFIX + name);
}
