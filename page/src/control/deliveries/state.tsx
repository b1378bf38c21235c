import { Badge } from "../../ui/parts.tsx";
import type { Delivery } from "../../wire.ts";
import { MEANINGS } from "./states.ts";

export function DeliveryBadge({ delivery }: { delivery: Delivery }) {
  const { word, tone } = MEANINGS[delivery.state ?? "pending"];
  return <Badge tone={tone}>{word}</Badge>;
}
