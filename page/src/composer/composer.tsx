import "./composer.css";
import { useCallback, useRef, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";
import { isKeeping } from "../outbox/outbox.ts";
import { atWork } from "../turns/standing.ts";
import { IconButton } from "../ui/button.tsx";
import { attempt } from "../ui/toast.tsx";
import { useArrival } from "./arrival.ts";
import { attach } from "./attaching.ts";
import { Attachments } from "./attachments.tsx";
import { CommandList, optionId } from "./command_list.tsx";
import { useDropped } from "./dropping.ts";
import { GrowingField } from "./field.tsx";
import { keysFor } from "./keyboard.ts";
import { useOffer } from "./offer.ts";
import { PasteOffer, pasted } from "./paste.tsx";
import { SendButton } from "./send_button.tsx";
import { isReady, obstacle, sendBy, stopAtWork } from "./sending.ts";
import { hintFor, placeholderFor, waysBeside } from "./ways.ts";
import { writingIn } from "./writing.ts";

const NOT_KEPT = "This browser keeps no messages: leave the page open until yours have arrived";

export interface ComposerProps {
  sessionId: string | null;
  /** The session that a new one follows. */
  previous: string | null;
  conversation: Conversation | null;
}

/** Where a message is written, with all that goes along, and sent. */
export function Composer({ sessionId, previous, conversation }: ComposerProps) {
  const writing = writingIn(sessionId);
  const turns = conversation?.turns.value ?? [];
  const ways = waysBeside(atWork(turns));
  const offer = useOffer(writing);
  const [long, setLong] = useState("");
  const take = useCallback((files: readonly File[]) => void attach(writing, files), [writing]);
  const held = useDropped(take);
  useArrival(sessionId === null);
  const send = (way = ways[0]) => {
    setLong("");
    return sendBy(way, writing, { sessionId, previous }, turns);
  };
  const onKeyDown = keysFor({ writing, turns, ways, offer, send });
  const isEmpty = !writing.text.value.trim() && !writing.attachments.value.length;
  const stops = isEmpty && ways.length > 1;
  return (
    <div class="composer">
      <div class={held ? "composer-box held" : "composer-box"}>
        {offer.commands.length > 0 && <CommandList offer={offer} onChoose={(command) => offer.take(command, send)} />}
        <Attachments writing={writing} />
        {long && <PasteOffer writing={writing} text={long} onDone={() => setLong("")} />}
        <GrowingField
          writing={writing}
          aria-label="Message"
          aria-autocomplete="list"
          aria-controls={offer.commands.length ? offer.id : undefined}
          aria-activedescendant={offer.commands.length ? optionId(offer.id, offer.chosen) : undefined}
          placeholder={held ? "Drop to attach" : placeholderFor(ways[0])}
          onInput={(event) => {
            writing.text.value = event.currentTarget.value;
          }}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const { files, long } = pasted(event);
            if (files.length) event.preventDefault();
            take(files);
            setLong(long);
          }}
        />
        <div class="composer-row">
          <AttachButton onFiles={take} />
          <p class="composer-hint">{obstacle(writing) || (isKeeping.value ? hintFor(ways) : NOT_KEPT)}</p>
          <SendButton
            ways={ways}
            ready={isReady(writing)}
            onStop={stops ? () => attempt(() => stopAtWork(turns)) : null}
            onSend={send}
          />
        </div>
      </div>
    </div>
  );
}

function AttachButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label="Attach pictures or files" onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          // The same file can be chosen again after it was removed.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}
