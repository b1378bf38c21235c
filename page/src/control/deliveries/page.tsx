/** What is on its way out of the gateway. */

import "./deliveries.css";
import { signal } from "@preact/signals";
import { query } from "../../api.ts";
import { to } from "../../router.ts";
import { Empty, Time } from "../../ui/parts.tsx";
import type { Delivery, DeliveryState } from "../../wire.ts";
import { Filter } from "../parts/filter.tsx";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Origin } from "../parts/origin.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { SendAgain } from "./again.tsx";
import { DeliveryDetail } from "./detail.tsx";
import { DeliveryBadge } from "./state.tsx";
import { isGivenUp, MEANINGS, nextTry } from "./states.ts";

const ORDER: readonly DeliveryState[] = ["pending", "sending", "retry", "unknown", "delivered", "failed", "expired"];
const CHOICES = [
  { value: "" as const, label: "All" },
  ...ORDER.map((state) => ({ value: state, label: MEANINGS[state].word })),
];

/** Kept, so that whoever comes back from a delivery finds the same list. */
const chosen = signal<DeliveryState | "">("");

export function DeliveriesPage({ id }: { id: string | null }) {
  return id ? <DeliveryDetail id={id} /> : <DeliveryList />;
}

function DeliveryList() {
  const list = useList<Delivery>(`/api/deliveries${query({ state: chosen.value })}`);
  return (
    <>
      <PageHead
        title="Deliveries"
        lead="Answers and messages on their way to somebody else: a chat, a URL, a file. Each is kept until it has arrived, or until you know that it has not."
      />
      <Filter
        label="Show only deliveries that are"
        choices={CHOICES}
        chosen={chosen.value}
        onChoose={(value) => {
          chosen.value = value;
        }}
      />
      {chosen.value && <p class="faint">{MEANINGS[chosen.value].said}</p>}
      <Listing list={list} empty={<NoDeliveries />}>
        {(items) => <Table label="Deliveries" columns={columns(list.refresh)} rows={items} keyOf={(each) => each.id} />}
      </Listing>
    </>
  );
}

function NoDeliveries() {
  if (chosen.value) return <Empty icon="send" title={`None: ${MEANINGS[chosen.value].word.toLowerCase()}`} />;
  return (
    <Empty icon="send" title="Nothing has been sent anywhere yet">
      Answers to webhooks, of jobs that deliver somewhere, and to people in chats appear here with each try. Give a{" "}
      <a href={to.control("jobs")}>job</a> a place to deliver to, and its next answer is the first.
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
        {delivery.text.trim() || "(empty)"}
      </a>
      {delivery.error && delivery.state !== "delivered" && <span class="delivery-error">{delivery.error}</span>}
      <span class="delivery-way">
        to {delivery.target}, from <Origin sessionId={delivery.session_id} turnId={delivery.turn_id} />
      </span>
    </>
  );
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
