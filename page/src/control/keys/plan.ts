/** A key as it is written in its form, and as the gateway takes it. */

import type { KeyPlan } from "../../wire.ts";
import { ADMIN, API, OPERATOR, WEBHOOK } from "./opening.ts";

export type May = "api" | "admin" | "webhook";

export interface Written {
  name: string;
  may: May;
  /** Of a webhook's key. */
  route: string;
  /** Of a key for the API. */
  owner: string;
  rate: string;
}

export const EMPTY: Written = { name: "", may: "api", route: "", owner: "", rate: "" };

/** Return what to ask for; what does not belong to such a key is left out, whatever was written before. */
export function planned({ name, may, route, owner, rate }: Written): Required<KeyPlan> {
  return {
    name: name.trim(),
    scopes: [{ api: API, admin: ADMIN, webhook: `${WEBHOOK}${route.trim()}` }[may]],
    owner: (may === "api" && owner.trim()) || OPERATOR,
    rate_limit: Number(rate) || 0,
  };
}

/** Whether there is something to be written yet. */
export const isMissing = ({ name, may, route }: Written) => !name.trim() || (may === "webhook" && !route.trim());
