import { Badge } from "../../ui/parts.tsx";
import type { RouteView } from "../../wire.ts";

/** What is to be known of a route at a glance. */
export function RouteMarks({ route }: { route: RouteView }) {
  return (
    <span class="route-marks">
      {!route.enabled && <Badge tone="busy">paused</Badge>}
      {route.signed ? <Badge tone="good">signed</Badge> : <Badge tone="bad">not signed</Badge>}
      {route.scheme !== "any" && <Badge>{route.scheme}</Badge>}
      {route.deliver_only && <Badge tone="note">without an agent</Badge>}
      <Badge>{route.source === "configuration" ? "in holdfast.toml" : "added"}</Badge>
    </span>
  );
}
