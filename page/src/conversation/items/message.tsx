/** A person's message, with its editor. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isTouchScreen } from "../../composer/composer.tsx";
import type { MessageItem, PriorItem } from "../../journal/view.ts";
import { editAndResend } from "../../turns/actions.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { LongText } from "../../ui/folding.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Badge, CopyButton, Time } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import { useConversation, useRemembered } from "../context.ts";
import { Pictures } from "../pictures.tsx";

/** A person's message with its actions.  A notice from the gateway in that place looks different. */
export function Message({ item }: { item: MessageItem }) {
  const [isEditing, setEditing] = useRemembered(`editing ${item.turnId} ${item.key}`, false);
  const note = systemNote(item.text);
  if (note) return <GatewayNotice note={note.note} rest={note.rest} />;
  if (isEditing) return <Editor item={item} onClose={() => setEditing(false)} />;
  return (
    <div class="message">
      {item.joinedFrom && <Badge>sent while running</Badge>}
      <Pictures item={item} />
      {item.text && (
        <div class="message-text">
          <LongText text={item.text}>{(visible) => visible}</LongText>
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

/** A notice from the gateway to the agent: a command has ended, or a delegated task is done. */
function GatewayNotice({ note, rest }: { note: string; rest: string }) {
  return (
    <div class="notice">
      <Icon name="bell" size={16} />
      <div class="notice-text">
        <p>{note}</p>
        {rest && <LongText text={rest}>{(visible) => <p class="notice-rest">{visible}</p>}</LongText>}
      </div>
    </div>
  );
}

/** An earlier message, as told by an API client. */
export function PriorMessage({ item }: { item: PriorItem }) {
  return (
    <div class="prior">
      <span class="prior-speaker">{item.speaker}</span>
      <div class="prior-text">
        <LongText text={item.text}>{(visible) => visible}</LongText>
      </div>
    </div>
  );
}

interface EditorProps {
  item: MessageItem;
  onClose: () => void;
}

/** The editor of a message.  It stays open until the new message is stored. */
function Editor({ item, onClose }: EditorProps) {
  const [text, setText] = useRemembered(`edited ${item.turnId} ${item.key}`, item.text);
  const [isSending, setSending] = useState(false);
  const conversation = useConversation();
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(item.text.length, item.text.length);
  }, [item]);
  const isLast = conversation.turns.value.at(-1)?.id === item.turnId;
  const send = async () => {
    const turn = conversation.turns.value.find((each) => each.id === item.turnId);
    if (!turn || !text.trim() || isSending) return;
    setSending(true);
    const done = await attempt(async () => {
      await editAndResend(conversation, turn, text.trim());
      return true;
    });
    setSending(false);
    if (done) close();
  };
  const close = () => {
    // The field is about to be removed; the keyboard focus moves to the turn.
    area.current?.closest<HTMLElement>("[data-turn]")?.focus({ preventScroll: true });
    setText(item.text);
    onClose();
  };
  const steer = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouchScreen()) send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Pictures item={item} />
      <textarea
        ref={area}
        class="input"
        dir="auto"
        aria-label="Edit the message"
        value={text}
        rows={Math.min(12, text.split("\n").length + 1)}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={steer}
      />
      <div class="editor-foot">
        <span class="editor-hint">
          {isLast
            ? "Replaces this message and its answer."
            : "Continues in a copy of the conversation; this one stays as it is."}
        </span>
        <Button small onClick={close}>
          Cancel
        </Button>
        <Button small look="main" icon="send" type="submit" disabled={isSending || !text.trim()}>
          Send
        </Button>
      </div>
    </form>
  );
}

const NOTE = /^\s*\[System note: ([^\]]*)\]?\s*/;

/** Return the notice of the gateway and its attached text; null for a person's message. */
function systemNote(text: string): { note: string; rest: string } | null {
  const found = NOTE.exec(text);
  if (!found) return null;
  const note = found[1]!.trim();
  return { note: note && note[0]!.toUpperCase() + note.slice(1), rest: text.slice(found[0].length).trim() };
}
