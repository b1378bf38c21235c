/** Deliveries: messages on their way out of the gateway. */

import "./deliveries.css";
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { post, query } from "../api.ts";
import { bytes, plural } from "../format.ts";
import { to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Badge, CopyButton, Empty, Time, type Tone } from "../ui/parts.tsx";
import { useLoaded } from "../ui/requests.ts";
import { attempt, showToast } from "../ui/toast.tsx";
import type { Delivery, DeliveryState, PageOfDelivery } from "../wire.ts";
import { type Column, Listing, Table, useList } from "./list.tsx";
import { Facts, Filter, PageHead, Pending, Section } from "./parts.tsx";
import { SessionLink } from "./session_link.tsx";

interface Meaning {
  word: string;
  tone: Tone;
  meaning: string;
}

const STATES: Record<DeliveryState, Meaning> = {
  pending: { word: "Waiting", tone: "plain", meaning: "Stored, and will be sent." },
  sending: { word: "Sending", tone: "busy", meaning: "Being sent now." },
  retry: {
    word: "Retrying",
    tone: "busy",
    meaning: "The recipient refused it or could not be reached, so it has not arrived. It is retried automatically.",
  },
  unknown: {
    word: "Unconfirmed",
    tone: "note",
    meaning:
      "It was sent, but not confirmed, so it may or may not have arrived. " +
      "If the recipient can be asked, it is asked; otherwise it is sent once more, marked as a possible repeat, and never again.",
  },
  delivered: { word: "Delivered", tone: "good", meaning: "The recipient has confirmed it." },
  failed: {
    word: "Failed",
    tone: "bad",
    meaning: "Given up: the recipient refuses it, or too many attempts failed. You can send it again.",
  },
  expired: {
    word: "Expired",
    tone: "bad",
    meaning: "Given up: it could not be sent in time. You can send it again.",
  },
};

const ORDER: readonly DeliveryState[] = ["pending", "sending", "retry", "unknown", "delivered", "failed", "expired"];
const CHOICES = [
  { value: "" as const, label: "All" },
  ...ORDER.map((state) => ({ value: state, label: STATES[state].word })),
];

/** Module state, so that the filter survives a visit to one delivery. */
const stateFilter = signal<DeliveryState | "">("");

export function DeliveriesPage({ id }: { id: string | null }) {
  return id ? <DeliveryDetail id={id} /> : <DeliveryList />;
}

function DeliveryList() {
  const list = useList<Delivery>(`/api/deliveries${query({ state: stateFilter.value })}`);
  return (
    <>
      <PageHead
        title="Deliveries"
        lead="Outgoing answers and messages: to a chat, a URL or a file. Each is stored until it has arrived or is known to have failed."
      />
      <Filter
        label="Show only deliveries that are"
        choices={CHOICES}
        chosen={stateFilter.value}
        onChoose={(value) => {
          stateFilter.value = value;
        }}
      />
      {stateFilter.value && <p class="faint">{STATES[stateFilter.value].meaning}</p>}
      <Listing list={list} empty={<NoDeliveries />}>
        {(items) => <Table label="Deliveries" columns={columns(list.refresh)} rows={items} keyOf={(each) => each.id} />}
      </Listing>
    </>
  );
}

function NoDeliveries() {
  if (stateFilter.value)
    return <Empty icon="send" title={`No deliveries: ${STATES[stateFilter.value].word.toLowerCase()}`} />;
  return (
    <Empty icon="send" title="No deliveries yet">
      Answers to webhooks, jobs and chats appear here with each attempt. Give a <a href={to.control("jobs")}>job</a> a
      delivery target to see the first one.
    </Empty>
  );
}

function columns(refresh: () => void): readonly Column<Delivery>[] {
  return [
    { title: "State", cell: (each) => <DeliveryBadge delivery={each} /> },
    { title: "Message", wide: true, cell: (each) => <Message delivery={each} /> },
    { title: "When", cell: (each) => <When delivery={each} /> },
    { title: "", cell: (each) => isGivenUp(each) && <SendAgain delivery={each} onSent={refresh} /> },
  ];
}

function Message({ delivery }: { delivery: Delivery }) {
  return (
    <>
      <a class="rows-link" href={to.control("deliveries", delivery.id)}>
        {wordsOf(delivery)}
      </a>
      {delivery.error && delivery.state !== "delivered" && <span class="delivery-error">{delivery.error}</span>}
      <span class="delivery-way">
        to {delivery.target}, from <Source delivery={delivery} />
      </span>
    </>
  );
}

/** Return what a delivery says in a list: the name of its file, and its text. */
function wordsOf({ text, extra }: Delivery): string {
  const said = text.trim();
  if (!extra?.file) return said || "(empty)";
  return said ? `${extra.file.name}: ${said}` : extra.file.name;
}

function Source({ delivery }: { delivery: Delivery }) {
  if (!delivery.session_id || !delivery.turn_id) return <>Holdfast itself</>;
  return <SessionLink sessionId={delivery.session_id} turnId={delivery.turn_id} />;
}

function When({ delivery }: { delivery: Delivery }) {
  const next = nextTry(delivery);
  if (next !== null && (delivery.attempt ?? 0) > 0) {
    return (
      <span class="faint">
        next try <Time at={next} as="relative" />
      </span>
    );
  }
  return <Time at={delivery.settled_at ?? delivery.created_at} />;
}

const POLL_MS = 2_500;

/** One delivery, with its attempts. */
function DeliveryDetail({ id }: { id: string }) {
  const [loaded, reload] = useLoaded<Delivery>(`/api/deliveries/${encodeURIComponent(id)}`, POLL_MS);
  const { value, error } = loaded.value;
  const back = { label: "Deliveries", href: to.control("deliveries") };
  if (!value) {
    return (
      <>
        <PageHead title="Delivery" back={back} />
        <Pending error={error} onRetry={reload} />
      </>
    );
  }
  const title = (
    <>
      To {value.target} <DeliveryBadge delivery={value} />
    </>
  );
  return (
    <>
      <PageHead title={title} lead={stateText(value)} back={back}>
        {isGivenUp(value) && <SendAgain delivery={value} onSent={reload} />}
      </PageHead>
      {value.error && value.state !== "delivered" && <p class="problem">{value.error}</p>}
      <div class="panel">
        <Facts facts={factsOf(value)} />
      </div>
      {(value.text || !value.extra?.file) && (
        <Section title="What is sent" aside={<CopyButton text={() => value.text} label="Copy the text" />}>
          <pre class="panel delivery-whole">{value.text}</pre>
        </Section>
      )}
      {value.session_id && <OtherParts delivery={value} sessionId={value.session_id} />}
    </>
  );
}

function factsOf(delivery: Delivery) {
  const { attempt = 0, repeats = 0, settled_at: settled } = delivery;
  const next = nextTry(delivery);
  const file = delivery.extra?.file;
  return [
    { name: "What", value: partOf(delivery) },
    { name: "File", value: file ? `${file.name} (${bytes(file.bytes)})` : null },
    { name: "From", value: <Source delivery={delivery} /> },
    { name: "Attempts", value: plural(attempt, "attempt") },
    { name: "Repeated", value: repeats > 0 ? plural(repeats, "time") : null },
    { name: "Next try", value: next === null ? null : <Time at={next} as="relative" /> },
    { name: "Created", value: <Time at={delivery.created_at} /> },
    { name: "Finished", value: settled ? <Time at={settled} /> : null },
    { name: "Confirmation", value: delivery.receipt ? <code>{delivery.receipt}</code> : null },
    { name: "Id", value: <code>{delivery.id}</code> },
  ];
}

/** The other parts of the same answer. */
function OtherParts({ delivery, sessionId }: { delivery: Delivery; sessionId: string }) {
  const [loaded] = useLoaded<PageOfDelivery>(`/api/deliveries${query({ session: sessionId })}`, POLL_MS);
  const all = loaded.value.value?.items ?? [];
  const others = all.filter((each) => each.turn_id === delivery.turn_id && each.id !== delivery.id);
  if (others.length === 0) return null;
  return (
    <Section title="Other parts of this answer">
      <ul class="panel delivery-siblings">
        {others.toReversed().map((each) => (
          <li key={each.id}>
            <DeliveryBadge delivery={each} />
            <a href={to.control("deliveries", each.id)}>{partOf(each)}</a>
            <span class="faint">to {each.target}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Retries a delivery that was given up. */
function SendAgain({ delivery, onSent }: { delivery: Delivery; onSent: () => void }) {
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    const path = `/api/deliveries/${encodeURIComponent(delivery.id)}/retry`;
    if (await attempt(() => post<Delivery>(path))) showToast(`Sending to ${delivery.target} again.`);
    setBusy(false);
    onSent();
  };
  return (
    <Button small icon="retry" disabled={busy} onClick={send}>
      Send again
    </Button>
  );
}

function DeliveryBadge({ delivery }: { delivery: Delivery }) {
  const { word, tone } = STATES[delivery.state ?? "pending"];
  return <Badge tone={tone}>{word}</Badge>;
}

const REPEATED =
  "It was not confirmed, so it was sent once more, marked as a possible repeat, and that was not confirmed either. " +
  "It may have arrived, and is not sent again.";

/** Return what the state of a delivery means. */
function stateText({ state = "pending", repeats = 0 }: Delivery): string {
  return state === "unknown" && repeats > 0 ? REPEATED : STATES[state].meaning;
}

/** Whether it is only retried when a person asks for it. */
const isGivenUp = (delivery: Delivery) => delivery.state === "failed" || delivery.state === "expired";

/** Messages that a turn sends while it runs have part numbers from here downwards. */
const ASIDE_LAST = -1_000_001;

/** Return which part of its turn a delivery is. */
function partOf({ part }: Delivery): string {
  if (part > 0) return `Part ${part} of the answer`;
  return part > ASIDE_LAST ? "Notice of a stop" : "Sent while running";
}

/** Return when it is tried next; null if it is not. */
function nextTry(delivery: Delivery): number | null {
  const { state = "pending", repeats = 0, due_at } = delivery;
  const waits = state === "pending" || state === "retry" || (state === "unknown" && repeats === 0);
  return waits ? due_at : null;
}
