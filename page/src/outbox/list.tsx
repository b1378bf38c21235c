/** The outgoing messages of a session, with their status, below the ones that have arrived. */

import "./list.css";
import { useEffect, useState } from "preact/hooks";
import { reattachedPicture } from "../composer/attachments.tsx";
import { prefill } from "../composer/drafts.ts";
import { online } from "../connection.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";
import type { Outgoing } from "./message.ts";
import { discard, outgoing, resend } from "./outbox.ts";

/** A message that arrives sooner shows no status. */
const STATUS_AFTER_MS = 400;

interface OutboxListProps {
  sessionId: string | null;
  sessionKey: string | null;
}

/** The messages on their way, below the ones that have arrived. */
export function OutboxList({ sessionId, sessionKey }: OutboxListProps) {
  const items = outgoingOf(outgoing.value, sessionId, sessionKey);
  return (
    <div class="outbox" role="log" aria-label="Outgoing messages">
      {items.map((each) =>
        each.reply === null ? <OutgoingRow key={each.key} item={each} /> : <Reply key={each.key} item={each} />,
      )}
    </div>
  );
}

function OutgoingRow({ item }: { item: Outgoing }) {
  const due = useStatusVisible(item);
  const status = statusOf(item, online.value);
  return (
    <article class={due ? "on-its-way due" : "on-its-way"}>
      {item.images.length > 0 && <Pictures item={item} />}
      <p class="on-its-way-text">{item.text}</p>
      <p class={`outgoing-status ${status.tone}`}>
        <Icon name={status.icon} size={14} />
        <span>{status.text}</span>
      </p>
      {due && <Actions item={item} />}
    </article>
  );
}

function Pictures({ item }: { item: Outgoing }) {
  return (
    <div class="on-its-way-pictures">
      {item.images.map((each) => (
        <img key={each.name} src={`data:${each.media_type};base64,${each.data}`} alt={each.name} />
      ))}
    </div>
  );
}

/** A message that waits can be edited or discarded; a refused one can also be sent again. */
function Actions({ item }: { item: Outgoing }) {
  if (item.state !== "refused" && item.state !== "waiting") return null;
  return (
    <div class="on-its-way-actions">
      <Button small icon="edit" onClick={() => attempt(() => edit(item))}>
        Edit
      </Button>
      {item.state === "refused" && (
        <Button small icon="retry" onClick={() => attempt(async () => resend(item.key))}>
          Send again
        </Button>
      )}
      <Button small icon="trash" onClick={() => attempt(async () => discard(item.key))}>
        Discard
      </Button>
    </div>
  );
}

async function edit(item: Outgoing): Promise<void> {
  await discard(item.key);
  prefill(item.sessionId, item.text, item.images.map(reattachedPicture));
}

/** The reply to a command. */
function Reply({ item }: { item: Outgoing }) {
  return (
    <div class="command-reply">
      <Icon name="info" size={16} />
      <div>
        <code>{item.text}</code>
        <p>{item.reply}</p>
      </div>
      <IconButton icon="close" size={14} label="Dismiss" onClick={() => attempt(async () => discard(item.key))} />
    </div>
  );
}

/** Return whether the status of a message is shown. */
function useStatusVisible({ at, state }: Outgoing): boolean {
  const early = state === "waiting" || state === "sending" || state === "accepted";
  const [late, setLate] = useState(Date.now() - at >= STATUS_AFTER_MS);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), STATUS_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return late || !early;
}

interface MessageStatus {
  icon: IconName;
  text: string;
  tone: "plain" | "busy" | "bad";
}

/** Return the status of a message.  While the gateway is away, that is the first thing to say. */
export function statusOf({ state, problem }: Pick<Outgoing, "state" | "problem">, online: boolean): MessageStatus {
  switch (state) {
    case "waiting":
      return online
        ? { icon: "clock", text: "Waiting to be sent", tone: "plain" }
        : { icon: "offline", text: "Will be sent when the gateway is back", tone: "busy" };
    case "sending":
      return { icon: "send", text: "Sending…", tone: "plain" };
    case "unconfirmed":
      return {
        icon: "question",
        text: "Delivery unconfirmed: no answer came. It is sent again, and will arrive only once.",
        tone: "busy",
      };
    case "accepted":
      return { icon: "check", text: "Accepted", tone: "plain" };
    case "refused":
      return { icon: "warning", text: problem || "The gateway refused the message.", tone: "bad" };
  }
}

/** Return the outgoing messages of a session; without one, those that will open a session. */
export function outgoingOf(
  all: readonly Outgoing[],
  sessionId: string | null,
  sessionKey: string | null,
): readonly Outgoing[] {
  return all.filter((each) => {
    if (each.sessionId !== null) return each.sessionId === sessionId;
    return sessionId === null || (sessionKey !== null && each.opening?.key === sessionKey);
  });
}
