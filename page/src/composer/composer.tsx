/** The composer: the message field, its attachments, and the buttons that send and stop. */

import "./composer.css";
import type { JSX } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";
import { isPersistent } from "../outbox/outbox.ts";
import { activeTurn } from "../turns/status.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Menu } from "../ui/menu.tsx";
import { attempt } from "../ui/toast.tsx";
import { Attachments, attach, PasteOffer, pasted, useFileDrop } from "./attachments.tsx";
import { CommandList, optionId, useCommandMenu } from "./commands.tsx";
import { type Draft, draftOf } from "./drafts.ts";
import { keysFor } from "./keyboard.ts";
import { hintFor, placeholderFor, type SendMode, sendModes } from "./send_modes.ts";
import { isReady, sendAs, stopActive, useNewSession, whyNotReady } from "./sending.ts";

const NOT_STORED = "This browser cannot store messages. Keep the page open until yours have arrived";

interface ComposerProps {
  sessionId: string | null;
  /** The session that a new one follows. */
  previous: string | null;
  conversation: Conversation | null;
}

/** The composer of a session, or of a new one. */
export function Composer({ sessionId, previous, conversation }: ComposerProps) {
  const draft = draftOf(sessionId);
  const turns = conversation?.turns.value ?? [];
  const modes = sendModes(activeTurn(turns));
  const menu = useCommandMenu(draft);
  const [long, setLong] = useState("");
  const attachFiles = useCallback((files: readonly File[]) => void attach(draft, files), [draft]);
  const dragging = useFileDrop(attachFiles);
  useNewSession(sessionId === null);
  const send = (mode = modes[0]) => {
    setLong("");
    return sendAs(mode, draft, { sessionId, previous }, turns);
  };
  const onKeyDown = keysFor({ draft, turns, modes, menu, send });
  const isEmpty = !draft.text.value.trim() && !draft.attachments.value.length;
  const stops = isEmpty && modes.length > 1;
  return (
    <div class="composer">
      <div class={dragging ? "composer-box held" : "composer-box"}>
        {menu.commands.length > 0 && <CommandList menu={menu} onChoose={(command) => menu.choose(command, send)} />}
        <Attachments draft={draft} />
        {long && <PasteOffer draft={draft} text={long} onDone={() => setLong("")} />}
        <GrowingField
          draft={draft}
          aria-label="Message"
          aria-autocomplete="list"
          aria-controls={menu.commands.length ? menu.id : undefined}
          aria-activedescendant={menu.commands.length ? optionId(menu.id, menu.chosen) : undefined}
          placeholder={dragging ? "Drop to attach" : placeholderFor(modes[0])}
          onInput={(event) => {
            draft.text.value = event.currentTarget.value;
          }}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const { files, long } = pasted(event);
            if (files.length) event.preventDefault();
            attachFiles(files);
            setLong(long);
          }}
        />
        <div class="composer-row">
          <AttachButton onFiles={attachFiles} />
          <p class="composer-hint">{whyNotReady(draft) || (isPersistent.value ? hintFor(modes) : NOT_STORED)}</p>
          <SendButton
            modes={modes}
            ready={isReady(draft)}
            onStop={stops ? () => attempt(() => stopActive(turns)) : null}
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
          // So that the same file can be chosen again after it was removed.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

type Native = Omit<JSX.IntrinsicElements["textarea"], "value" | "ref" | "class">;

/** A text field that grows with its text, up to a part of the window. */
function GrowingField({ draft, ...rest }: { draft: Draft } & Native) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = draft.text.value;
  const focusRequests = draft.focusRequests.value;
  useLayoutEffect(() => fitHeight(field.current), [text]);
  // Before the next paint, so that no key is lost while the person keeps typing.
  useLayoutEffect(() => takeFocus(field.current, focusRequests > 0), [draft, focusRequests]);
  return <textarea {...rest} ref={field} class="composer-field" dir="auto" rows={1} value={text} />;
}

function fitHeight(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** On a phone the focus opens the keyboard, which is in the way of reading. */
function takeFocus(field: HTMLTextAreaElement | null, focusRequests: boolean): void {
  if (!field || (!focusRequests && isTouchScreen())) return;
  field.focus({ preventScroll: true });
  field.setSelectionRange(field.value.length, field.value.length);
}

export const isTouchScreen = () => matchMedia("(pointer: coarse)").matches;

interface SendButtonProps {
  modes: readonly [SendMode, ...SendMode[]];
  ready: boolean;
  /** Set while a turn can be stopped and the draft is empty. */
  onStop: (() => void) | null;
  onSend: (mode: SendMode) => void;
}

/** Sends; stops a running turn while the draft is empty; offers other ways to send while a turn runs. */
function SendButton({ modes: [main, ...others], ready, onStop, onSend }: SendButtonProps) {
  if (onStop) return <RoundButton icon="stop" label="Stop" onClick={onStop} />;
  if (!others.length) {
    return <RoundButton icon={main.icon} label={main.label} disabled={!ready} onClick={() => onSend(main)} />;
  }
  const items = others.map((mode) => ({
    label: `${mode.label}: ${mode.about.toLowerCase()}`,
    icon: mode.icon,
    onSelect: () => onSend(mode),
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
