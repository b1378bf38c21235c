import { to } from "../../router.ts";
import { Empty, Time } from "../../ui/parts.tsx";
import type { SessionView } from "../../wire.ts";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { TurnBadge, useTurn } from "./turn.tsx";

/** Each delivery has a conversation of its own, whose key says of which route it is. */
const keyOf = (route: string, delivery: string) => `webhook:${route}:${delivery}`;

const COLUMNS: readonly Column<SessionView>[] = [
  { title: "Came", cell: (each) => <Time at={each.created_at} /> },
  { title: "State", cell: (each) => <State sessionId={each.id} /> },
  {
    title: "Delivery",
    wide: true,
    cell: (each) => <a href={to.session(each.id)}>{each.label}</a>,
  },
];

function State({ sessionId }: { sessionId: string }) {
  return <TurnBadge turn={useTurn(sessionId)} />;
}

/** What a route was sent lately. */
export function Deliveries({ route }: { route: string }) {
  const list = useList<SessionView>("/api/sessions?channel=webhook");
  const none = <NoDeliveries />;
  return (
    <Listing list={list} empty={none}>
      {(sessions) => {
        const own = sessions.filter((each) => each.key.startsWith(keyOf(route, "")));
        return own.length ? <Table label="Deliveries" columns={COLUMNS} rows={own} keyOf={(each) => each.id} /> : none;
      }}
    </Listing>
  );
}

function NoDeliveries() {
  return (
    <Empty icon="webhook" title="Nothing came yet">
      What is sent to the route’s address shows here, with what became of it, for as long as its conversation is kept.
    </Empty>
  );
}
