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
  /** How much of it is there, from 0 to 1. */
  share: number;
  /** Where it is, as soon as all of it is there. */
  path: string | null;
  problem: string;
  /** To be sent again, or not at all any more. */
  retry: () => void;
  cancel: () => void;
}

export type Attachment = PictureAttachment | FileAttachment;

export interface Draft {
  /** Under which it is kept. */
  name: Signal<string>;
  text: Signal<string>;
  attachments: Signal<readonly Attachment[]>;
  /** Raised to ask for the focus. */
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

/** Return what is being written in a session, or, without one, to begin one. */
export function draftOf(sessionId: string | null): Draft {
  const name = sessionId ?? NEW;
  const known = drafts.get(name);
  if (known) return known;
  const draft = newDraft(name, readDraft(name));
  effect(() => writeDraft(draft.name.value, { text: draft.text.value, files: uploadedFiles(draft.attachments.value) }));
  drafts.set(name, draft);
  return draft;
}

/** Let what is being written to begin a session go on in it, for it was opened meanwhile. */
export function moveDraft(sessionId: string): void {
  const draft = drafts.get(NEW);
  if (!draft || drafts.has(sessionId)) return;
  drafts.delete(NEW);
  drafts.set(sessionId, draft);
  draft.name.value = sessionId;
  localStore.remove(PREFIX + NEW);
}

/** Put something into the field of a session, before what is there, for the person to go on from. */
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

/** Forget what was being written, in every session. */
export function clearAllDrafts(): void {
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStore.remove(name);
}

function newDraft(name: string, { text, files }: StoredDraft): Draft {
  const attachments = signal<readonly Attachment[]>(files.map(uploadedFile));
  return { name: signal(name), text: signal(text), attachments, focusRequests: signal(0) };
}

/** Return a file that was sent to the workspace before the page was loaded. */
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

function writeDraft(name: string, kept: StoredDraft): void {
  if (kept.text || kept.files.length) localStore.set(PREFIX + name, JSON.stringify(kept));
  else localStore.remove(PREFIX + name);
}
