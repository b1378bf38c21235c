/** Webhooks: routes that make a prompt of what other systems send. */

import "./webhooks.css";
import { RoutePage } from "./route.tsx";
import { RoutesPage } from "./routes.tsx";

export function WebhooksPage({ id }: { id: string | null }) {
  return id === null ? <RoutesPage /> : <RoutePage name={id} />;
}
