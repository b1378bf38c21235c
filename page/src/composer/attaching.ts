/** Attaching what was chosen, pasted or dropped: pictures to the message itself, all else to the workspace. */

import { told } from "../api.ts";
import { bytes } from "../format.ts";
import { tell, tellProblem } from "../ui/toast.tsx";
import { PICTURES_MAX, type Picture, pictureIn } from "./picture.ts";
import { UPLOAD_BYTES_MAX, upload } from "./upload.ts";
import { type Attachment, attachmentId, type FileAttached, type PictureAttached, type Writing } from "./writing.ts";

export async function attach(writing: Writing, files: readonly File[]): Promise<void> {
  for (const file of files) {
    try {
      const picture = await pictureIn(file);
      if (picture) attachPicture(writing, file.name, picture);
      else attachFile(writing, file);
    } catch (error) {
      tellProblem(error);
    }
  }
}

export function detach(writing: Writing, attachment: Attachment): void {
  if (attachment.kind === "file") attachment.drop();
  writing.attachments.value = writing.attachments.value.filter((each) => each.id !== attachment.id);
}

/** Return a picture that was a part of a message before, to be a part of another. */
export function attachedAgain(image: { media_type: string; data: string; name: string }): PictureAttached {
  return { kind: "picture", id: attachmentId(), name: image.name, mediaType: image.media_type, data: image.data };
}

function attachPicture(writing: Writing, name: string, { mediaType, data, shrunk }: Picture): void {
  const there = writing.attachments.value.filter((each) => each.kind === "picture").length;
  if (there >= PICTURES_MAX) {
    tell(`A message takes ${PICTURES_MAX} pictures at most: send ${name} with the next one.`, { bad: true });
    return;
  }
  if (shrunk) tell(`${name} was made smaller, because it was larger than a message takes.`);
  add(writing, { kind: "picture", id: attachmentId(), name, mediaType, data });
}

function attachFile(writing: Writing, file: File): void {
  if (file.size > UPLOAD_BYTES_MAX) {
    tell(`${file.name} has ${bytes(file.size)}; ${bytes(UPLOAD_BYTES_MAX)} is the most.`, { bad: true });
    return;
  }
  const id = attachmentId();
  const ending = new AbortController();
  const change = (changes: Partial<FileAttached>) => update(writing, id, changes);
  const again = () => sendFile(file, change, ending.signal);
  const drop = () => ending.abort();
  const { name, size } = file;
  add(writing, { kind: "file", id, name, bytes: size, share: 0, path: null, problem: "", again, drop });
  again();
}

async function sendFile(file: File, change: (changes: Partial<FileAttached>) => void, signal: AbortSignal) {
  change({ problem: "", share: 0 });
  try {
    const { path } = await upload(file, (share) => change({ share }), signal);
    change({ path, share: 1 });
  } catch (error) {
    change({ problem: told(error) });
  }
}

function add(writing: Writing, attachment: Attachment): void {
  writing.attachments.value = [...writing.attachments.value, attachment];
}

function update(writing: Writing, id: number, changes: Partial<FileAttached>): void {
  writing.attachments.value = writing.attachments.value.map((each) =>
    each.id === id && each.kind === "file" ? { ...each, ...changes } : each,
  );
}
