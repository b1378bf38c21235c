/** The composer: the message field, its attachments, and the buttons that send and stop. */

import "./composer.css";
import type { JSX } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";
import { isKeeping } from "../outbox/outbox.ts";
import { atWork } from "../turns/status.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Menu } from "../ui/menu.tsx";
import { attempt } from "../ui/toast.tsx";
import { Attachments, attach, PasteOffer, pasted, useDropped } from "./attachments.tsx";
import { CommandList, optionId, useOffer } from "./commands.tsx";
import { type Writing, writingIn } from "./drafts.ts";
import { keysFor } from "./keyboard.ts";
import { hintFor, placeholderFor, type Way, waysBeside } from "./send_modes.ts";
import { isReady, obstacle, sendBy, stopAtWork, useArrival } from "./sending.ts";

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

type Native = Omit<JSX.IntrinsicElements["textarea"], "value" | "ref" | "class">;

/** Where one writes: as high as the text, up to a part of the window. */
export function GrowingField({ writing, ...rest }: { writing: Writing } & Native) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = writing.text.value;
  const called = writing.called.value;
  useLayoutEffect(() => grow(field.current), [text]);
  // Before the page is painted, so that no key is lost to whoever writes on.
  useLayoutEffect(() => takeFocus(field.current, called > 0), [writing, called]);
  return <textarea {...rest} ref={field} class="composer-field" dir="auto" rows={1} value={text} />;
}

function grow(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** On a phone the focus brings the keyboard up, which nobody wants who came to read. */
function takeFocus(field: HTMLTextAreaElement | null, called: boolean): void {
  if (!field || (!called && isTouched())) return;
  field.focus({ preventScroll: true });
  field.setSelectionRange(field.value.length, field.value.length);
}

export const isTouched = () => matchMedia("(pointer: coarse)").matches;

interface SendButtonProps {
  ways: readonly [Way, ...Way[]];
  ready: boolean;
  /** Given while something runs that can be stopped, and there is nothing to send. */
  onStop: (() => void) | null;
  onSend: (way: Way) => void;
}

/** Sends; stops, while there is nothing to send; and offers a choice while something runs. */
export function SendButton({ ways: [main, ...others], ready, onStop, onSend }: SendButtonProps) {
  if (onStop) return <RoundButton icon="stop" label="Stop" onClick={onStop} />;
  if (!others.length) {
    return <RoundButton icon={main.icon} label={main.label} disabled={!ready} onClick={() => onSend(main)} />;
  }
  const items = others.map((way) => ({
    label: `${way.label}: ${way.about.toLowerCase()}`,
    icon: way.icon,
    onSelect: () => onSend(way),
  }));
  return (
    <div class="split-button">
      <Button look="main" icon={main.icon} title={main.about} disabled={!ready} onClick={() => onSend(main)}>
        {main.label}
      </Button>
      {ready && <Menu label="Other ways to send" icon="chevron" items={items} />}
    </div>
  );
}

interface RoundButtonProps {
  icon: IconName;
  label: string;
  disabled?: boolean;
  onClick: () => void;
}

function RoundButton({ icon, label, ...rest }: RoundButtonProps) {
  return (
    <button type="button" {...rest} class={`round-button ${icon}`} aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}
