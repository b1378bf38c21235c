/** Which keys open the API: while there is one, every program needs one. */

import type { KeyView } from "../../wire.ts";

export const API = "api";
export const ADMIN = "admin";
export const WEBHOOK = "webhook:";
/** Whom everything on this machine belongs to where nobody else is named. */
export const OPERATOR = "local";

export const isLive = (key: KeyView) => key.revoked_at === null;
export const opensApi = (key: KeyView) => isLive(key) && key.scopes.some((each) => each === API || each === ADMIN);

/** Return whether a key with these scopes would be the first that opens the API. */
export const isFirst = (keys: readonly KeyView[], scopes: readonly string[]) =>
  !keys.some(opensApi) && scopes.some((each) => each === API || each === ADMIN);

/** Return whether nothing opens the API any more without this key. */
export const isLast = (keys: readonly KeyView[], key: KeyView) => opensApi(key) && keys.filter(opensApi).length === 1;
