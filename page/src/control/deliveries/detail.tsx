import { query } from "../../api.ts";
import { plural } from "../../format.ts";
import { to } from "../../router.ts";
import { useLoaded } from "../../ui/load.ts";
import { CopyButton, Time } from "../../ui/parts.tsx";
import type { Delivery, PageOfDelivery } from "../../wire.ts";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/head.tsx";
import { Origin } from "../parts/origin.tsx";
import { Pending } from "../parts/pending.tsx";
import { Section } from "../parts/section.tsx";
import { SendAgain } from "./again.tsx";
import { DeliveryBadge } from "./state.tsx";
import { isGivenUp, meaning, nextTry, partOf } from "./states.ts";

const LOOK_MS = 2_500;

/** One delivery, with every try and why it went as it did. */
export function DeliveryDetail({ id }: { id: string }) {
  const [loaded, look] = useLoaded<Delivery>(`/api/deliveries/${encodeURIComponent(id)}`, LOOK_MS);
  const { value, error } = loaded.value;
  const back = { label: "Deliveries", href: to.control("deliveries") };
  if (!value) {
    return (
      <>
        <PageHead title="Delivery" back={back} />
        <Pending error={error} onRetry={look} />
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
      <PageHead title={title} lead={meaning(value)} back={back}>
        {isGivenUp(value) && <SendAgain delivery={value} onSent={look} />}
      </PageHead>
      {value.error && value.state !== "delivered" && <p class="problem">{value.error}</p>}
      <div class="panel">
        <Facts facts={factsOf(value)} />
      </div>
      <Section title="What is sent" aside={<CopyButton text={() => value.text} label="Copy the text" />}>
        <pre class="panel delivery-whole">{value.text}</pre>
      </Section>
      <Siblings delivery={value} />
    </>
  );
}

function factsOf(delivery: Delivery) {
  const { attempt = 0, repeats = 0, settled_at: settled } = delivery;
  const next = nextTry(delivery);
  return [
    { name: "What", value: partOf(delivery) },
    { name: "From", value: <Origin sessionId={delivery.session_id} turnId={delivery.turn_id} /> },
    { name: "Tries", value: plural(attempt, "try", "tries") },
    { name: "Sent again as a possible repeat", value: repeats > 0 ? plural(repeats, "time") : null },
    { name: "Next try", value: next === null ? null : <Time at={next} as="relative" /> },
    { name: "Made", value: <Time at={delivery.created_at} /> },
    { name: "Settled", value: settled ? <Time at={settled} /> : null },
    { name: "Receipt of the far side", value: delivery.receipt ? <code>{delivery.receipt}</code> : null },
    { name: "Id", value: <code>{delivery.id}</code> },
  ];
}

/** The other parts of the same answer. */
function Siblings({ delivery }: { delivery: Delivery }) {
  const [loaded] = useLoaded<PageOfDelivery>(`/api/deliveries${query({ session: delivery.session_id })}`, LOOK_MS);
  const all = loaded.value.value?.items ?? [];
  const others = all.filter((each) => each.turn_id === delivery.turn_id && each.id !== delivery.id);
  if (others.length === 0) return null;
  return (
    <Section title="Of the same answer">
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
