/** Sending a delivery to a route as its sender would: signed, and not as somebody who is signed in. */

import { post, Refused, Unanswered } from "../../api.ts";
import type { Refusal, RouteView, Signed, Taken } from "../../wire.ts";

const PATIENCE_MS = 30_000;

export interface Handed {
  status: number;
  taken: Taken;
}

/** Sign a body with the route's secret and hand it in.  Throws `Refused` with what its sender would be told. */
export async function handIn(route: RouteView, body: string): Promise<Handed> {
  const signed = await post<Signed>(`/api/webhooks/${encodeURIComponent(route.name)}/sign`, { body });
  const response = await sent(route.path, signed);
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, (answer as Refusal | null)?.error);
  return { status: response.status, taken: answer as Taken };
}

async function sent(path: string, { headers, body }: Signed): Promise<Response> {
  try {
    return await fetch(path, { method: "POST", headers, body, signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch {
    throw new Unanswered();
  }
}
