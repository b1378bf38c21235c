import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isTouched } from "../../composer/field.tsx";
import type { MessageItem } from "../../journal/view.ts";
import { editAndResend } from "../../turns/actions.ts";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toast.tsx";
import { useTalk } from "../context.ts";
import { useRemembered } from "../remembered.ts";
import { Pictures } from "./pictures.tsx";

interface EditorProps {
  item: MessageItem;
  onClose: () => void;
}

/** A message in the making once more.  It stays open until what was changed is safe. */
export function Editor({ item, onClose }: EditorProps) {
  const [text, setText] = useRemembered(`edited ${item.turnId} ${item.key}`, item.text);
  const [isSending, setSending] = useState(false);
  const conversation = useTalk();
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
    // The field is about to go; whoever uses the keyboard stays where they were.
    area.current?.closest<HTMLElement>("[data-turn]")?.focus({ preventScroll: true });
    setText(item.text);
    onClose();
  };
  const steer = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouched()) send();
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
            ? "This exchange is replaced."
            : "A copy of the conversation goes on from here; this one stays as it is."}
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
