import { bytes, percent } from "../format.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { detach } from "./attaching.ts";
import type { Attachment, FileAttached, PictureAttached, Writing } from "./writing.ts";

/** What goes along with the message. */
export function Attachments({ writing }: { writing: Writing }) {
  const attachments = writing.attachments.value;
  if (!attachments.length) return null;
  return (
    <ul class="attachments" aria-label="Attachments">
      {attachments.map((each) => (
        <li key={each.id} class={`attached-${each.kind}`}>
          {each.kind === "picture" ? <PicturePreview picture={each} /> : <FilePreview file={each} />}
          <IconButton icon="close" size={14} label={`Remove ${each.name}`} onClick={() => detach(writing, each)} />
        </li>
      ))}
    </ul>
  );
}

function PicturePreview({ picture }: { picture: PictureAttached }) {
  return <img src={`data:${picture.mediaType};base64,${picture.data}`} alt={picture.name} title={picture.name} />;
}

function FilePreview({ file }: { file: FileAttached }) {
  return (
    <>
      <Icon name={file.problem ? "warning" : "file"} />
      <div class="file-text">
        <span class="file-name" title={file.name}>
          {file.name}
        </span>
        <span class={file.problem ? "file-more bad" : "file-more"} role={file.problem ? "alert" : undefined}>
          {standing(file)}
        </span>
        {isOnItsWay(file) && <progress value={file.share} aria-label={`Sending ${file.name}`} />}
      </div>
      {file.problem && <IconButton icon="retry" size={15} label={`Send ${file.name} again`} onClick={file.again} />}
    </>
  );
}

function standing(file: FileAttached): string {
  return file.problem || (isOnItsWay(file) ? `${percent(file.share)} of ${bytes(file.bytes)}` : bytes(file.bytes));
}

const isOnItsWay = (each: Attachment) => each.kind === "file" && each.path === null && !each.problem;
