/** Asking the gateway: every request of the page but the event streams goes through here. */

import { setClock } from "./clock.ts";
import { signedFetch } from "./signing.ts";
import type { Error as Problem, Refusal } from "./wire.ts";

/** Told to the window when the gateway no longer knows this browser: the door opens then. */
export const SIGNED_OUT = "holdfast:signed-out";
/** What takes longer than this is not going to be answered. */
const PATIENCE_MS = 30_000;

/** The gateway answered, and said no. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problem: Partial<Problem>;
  /** When it is worth asking again, as far as the gateway has said so. */
  readonly retryAfterMs: number | null;

  constructor(status: number, problem: Partial<Problem> = {}, retryAfterMs: number | null = null) {
    super(sentence(problem.message ?? `The gateway answered ${status}`));
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.code = problem.code ?? "";
    this.hint = sentence(problem.hint ?? "");
    this.problem = problem;
  }
}

/** Nobody can tell whether the gateway got the request: there was no answer. */
export class Unanswered extends Error {
  constructor() {
    super("The gateway does not answer.");
  }
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export interface Asking {
  body?: unknown;
  /** Sent as it is instead of `body`. */
  raw?: Blob;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  patienceMs?: number;
}

/** Ask the gateway for JSON.  Throws `Refused` when it says no, and `Unanswered` when nothing comes back. */
export async function ask<T>(method: Method, path: string, asking: Asking = {}): Promise<T> {
  const response = await granted(method, path, asking);
  return whole(response.json(), asking.signal);
}

/** Ask the gateway for a file. */
export async function getFile(path: string, asking: Asking = {}): Promise<Blob> {
  const response = await granted("GET", path, asking);
  return whole(response.blob(), asking.signal);
}

/** Return the no of the gateway, as its status and its answer say it.  Whoever it does not know any more is sent to the door. */
export function refusal(status: number, answer: unknown, retryAfter: string | null = null): Refused {
  if (status === 401) dispatchEvent(new Event(SIGNED_OUT));
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const problem = (answer as Partial<Refusal> | null)?.error;
  return new Refused(status, problem, Number.isNaN(seconds) ? null : seconds * 1_000);
}

export const get = <T>(path: string, asking?: Asking) => ask<T>("GET", path, asking);
export const post = <T>(path: string, body: unknown = {}, asking: Asking = {}) =>
  ask<T>("POST", path, { ...asking, body });
export const patch = <T>(path: string, body: unknown) => ask<T>("PATCH", path, { body });
export const put = <T>(path: string, body: unknown) => ask<T>("PUT", path, { body });
export const remove = <T>(path: string) => ask<T>("DELETE", path);

/** Return a query with what is given in it, and nothing else. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const written = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return written && `?${written}`;
}

async function granted(method: Method, path: string, asking: Asking): Promise<Response> {
  const response = await answered(method, path, asking);
  if (response.ok) return response;
  throw refusal(response.status, await response.json().catch(() => null), response.headers.get("Retry-After"));
}

async function answered(method: Method, path: string, { body, raw, headers, signal, patienceMs }: Asking) {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const kind = body !== undefined && !raw ? { "Content-Type": "application/json" } : {};
  const limit = AbortSignal.timeout(patienceMs ?? PATIENCE_MS);
  const asked = signedFetch(path, {
    method,
    cache: "no-store",
    headers: { ...kind, ...headers },
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    ...(sent === undefined ? {} : { body: sent }),
  });
  const response = await whole(asked, signal);
  setClock(response.headers.get("Date"));
  return response;
}

/** Return what comes back, if all of it does: an answer that breaks off says nothing, and least of all that nobody is there. */
async function whole<T>(coming: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await coming;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unanswered();
  }
}

/** Return what went wrong as something that can be shown to a person. */
export function told(error: unknown): string {
  if (error instanceof Refused) return [error.message, error.hint].filter(Boolean).join(" ");
  return error instanceof Error ? error.message : String(error);
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed && trimmed[0]!.toUpperCase() + trimmed.slice(1) + (/[.?!…:]$/.test(trimmed) ? "" : ".");
}
