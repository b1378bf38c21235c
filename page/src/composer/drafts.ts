/** Drafts: one per session, kept while another session is open; text and uploaded files survive a reload. */

import { effect, type Signal, signal } from "@preact/signals";
import { pocket } from "../browser.ts";
import type { Upload } from "../wire.ts";

export interface PictureAttached {
  kind: "picture";
  id: number;
  name: string;
  mediaType: string;
  /** In base64, as it is sent. */
  data: string;
}

export interface FileAttached {
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
  again: () => void;
  drop: () => void;
}

export type Attachment = PictureAttached | FileAttached;

export interface Writing {
  /** Under which it is kept. */
  name: Signal<string>;
  text: Signal<string>;
  attachments: Signal<readonly Attachment[]>;
  /** Raised to ask for the focus. */
  called: Signal<number>;
}

interface Kept {
  text: string;
  files: Upload[];
}

const PREFIX = "holdfast.writing.";
const NEW = "new";
const writings = new Map<string, Writing>();
let last = 0;

export const attachmentId = () => ++last;

/** Return what is being written in a session, or, without one, to begin one. */
export function writingIn(sessionId: string | null): Writing {
  const name = sessionId ?? NEW;
  const known = writings.get(name);
  if (known) return known;
  const writing = begun(name, read(name));
  effect(() => write(writing.name.value, { text: writing.text.value, files: kept(writing.attachments.value) }));
  writings.set(name, writing);
  return writing;
}

/** Let what is being written to begin a session go on in it, for it was opened meanwhile. */
export function moveInto(sessionId: string): void {
  const writing = writings.get(NEW);
  if (!writing || writings.has(sessionId)) return;
  writings.delete(NEW);
  writings.set(sessionId, writing);
  writing.name.value = sessionId;
  pocket.remove(PREFIX + NEW);
}

/** Put something into the field of a session, before what is there, for the person to go on from. */
export function fill(sessionId: string | null, text: string, attachments: readonly Attachment[] = []): void {
  const writing = writingIn(sessionId);
  writing.text.value = [text, writing.text.value.trim()].filter(Boolean).join("\n\n");
  writing.attachments.value = [...writing.attachments.value, ...attachments];
  writing.called.value += 1;
}

export function clear(writing: Writing): void {
  writing.text.value = "";
  writing.attachments.value = [];
}

/** Forget what was being written, in every session. */
export function forgetWriting(): void {
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) pocket.remove(name);
}

function begun(name: string, { text, files }: Kept): Writing {
  const attachments = signal<readonly Attachment[]>(files.map(fileThere));
  return { name: signal(name), text: signal(text), attachments, called: signal(0) };
}

/** Return a file that was sent to the workspace before the page was loaded. */
function fileThere({ name, bytes, path }: Upload): FileAttached {
  const nothing = () => {};
  return { kind: "file", id: attachmentId(), name, bytes, share: 1, path, problem: "", again: nothing, drop: nothing };
}

function kept(attachments: readonly Attachment[]): Upload[] {
  return attachments.flatMap((each) =>
    each.kind === "file" && each.path ? [{ name: each.name, bytes: each.bytes, path: each.path }] : [],
  );
}

function read(name: string): Kept {
  const nothing: Kept = { text: "", files: [] };
  try {
    return { ...nothing, ...JSON.parse(pocket.get(PREFIX + name) ?? "{}") };
  } catch {
    return nothing;
  }
}

function write(name: string, kept: Kept): void {
  if (kept.text || kept.files.length) pocket.set(PREFIX + name, JSON.stringify(kept));
  else pocket.remove(PREFIX + name);
}
