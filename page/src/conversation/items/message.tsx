import type { MessageItem, PriorItem } from "../../journal/view.ts";
import { IconButton } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Badge, CopyButton, Time } from "../../ui/parts.tsx";
import { useRemembered } from "../remembered.ts";
import { Folded } from "../tools/folded.tsx";
import { Editor } from "./editor.tsx";
import { Pictures } from "./pictures.tsx";
import { systemNote } from "./system_note.ts";

/** What a person wrote, with what they can do about it.  What the gateway says in their place looks different. */
export function Message({ item }: { item: MessageItem }) {
  const [isEditing, setEditing] = useRemembered(`editing ${item.turnId} ${item.key}`, false);
  const note = systemNote(item.text);
  if (note) return <Told note={note.note} rest={note.rest} />;
  if (isEditing) return <Editor item={item} onClose={() => setEditing(false)} />;
  return (
    <div class="message">
      {item.joinedFrom && <Badge>while it was at work</Badge>}
      <Pictures item={item} />
      {item.text && (
        <div class="message-text">
          <Folded text={item.text}>{(shown) => shown}</Folded>
        </div>
      )}
      <div class="actions">
        <Time at={item.at} />
        <CopyButton text={() => item.text} label="Copy the message" />
        {!item.joinedFrom && (
          <IconButton icon="edit" label="Edit and send again" size={16} onClick={() => setEditing(true)} />
        )}
      </div>
    </div>
  );
}

/** What the gateway told the agent by itself: a command has ended, a task has come home. */
function Told({ note, rest }: { note: string; rest: string }) {
  return (
    <div class="notice">
      <Icon name="bell" size={16} />
      <div class="notice-text">
        <p>{note}</p>
        {rest && <Folded text={rest}>{(shown) => <p class="notice-rest">{shown}</p>}</Folded>}
      </div>
    </div>
  );
}

/** What a client says was said before its message. */
export function Prior({ item }: { item: PriorItem }) {
  return (
    <div class="prior">
      <span class="prior-speaker">{item.speaker}</span>
      <div class="prior-text">
        <Folded text={item.text}>{(shown) => shown}</Folded>
      </div>
    </div>
  );
}
