/** Requests to the gateway: everything except the event streams goes through here. */

import { setClock } from "./clock.ts";
import { signedFetch } from "./signing.ts";
import type { Error as Problem, Refusal } from "./wire.ts";

/** Event on `window`: the gateway no longer accepts this browser's sign-in, so the sign-in page opens. */
export const SIGNED_OUT = "holdfast:signed-out";
/** The longest that the page waits for an answer. */
const TIMEOUT_MS = 30_000;

/** The gateway answered with an error. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problem: Partial<Problem>;
  /** When a retry makes sense, if the gateway said so. */
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

/** No answer came, so the request may or may not have arrived. */
export class Unanswered extends Error {
  constructor() {
    super("The gateway does not answer.");
  }
}

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

interface RequestOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  timeoutMs?: number;
}

/**
 * Send a request, and return the JSON of its answer.  Throws `Refused` on an error, and `Unanswered` when no answer
 * comes.
 */
async function request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await successful(method, path, options);
  return complete(response.json(), options.signal);
}

/** Request a file from the gateway. */
export async function getFile(path: string, options: RequestOptions = {}): Promise<Blob> {
  const response = await successful("GET", path, options);
  return complete(response.blob(), options.signal);
}

/** Return the error that the gateway answered.  A 401 also opens the sign-in page. */
export function refusedFrom(status: number, answer: unknown, retryAfter: string | null = null): Refused {
  if (status === 401) dispatchEvent(new Event(SIGNED_OUT));
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const problem = (answer as Partial<Refusal> | null)?.error;
  return new Refused(status, problem, Number.isNaN(seconds) ? null : seconds * 1_000);
}

export const get = <T>(path: string, options?: RequestOptions) => request<T>("GET", path, options);
export const post = <T>(path: string, body: unknown = {}, options: RequestOptions = {}) =>
  request<T>("POST", path, { ...options, body });
export const patch = <T>(path: string, body: unknown) => request<T>("PATCH", path, { body });
export const put = <T>(path: string, body: unknown) => request<T>("PUT", path, { body });
export const remove = <T>(path: string) => request<T>("DELETE", path);

/** Return a query string of the values that are set. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const parameters = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return parameters && `?${parameters}`;
}

async function successful(method: Method, path: string, options: RequestOptions): Promise<Response> {
  const response = await fetched(method, path, options);
  if (response.ok) return response;
  throw refusedFrom(response.status, await response.json().catch(() => null), response.headers.get("Retry-After"));
}

async function fetched(method: Method, path: string, { body, headers, signal, timeoutMs }: RequestOptions) {
  const json = body === undefined ? {} : { "Content-Type": "application/json" };
  const limit = AbortSignal.timeout(timeoutMs ?? TIMEOUT_MS);
  const pending = signedFetch(path, {
    method,
    cache: "no-store",
    headers: { ...json, ...headers },
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const response = await complete(pending, signal);
  setClock(response.headers.get("Date"));
  return response;
}

/** Return a complete answer.  A truncated answer counts as no answer. */
async function complete<T>(coming: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await coming;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unanswered();
  }
}

/** Return the text of an error, for people. */
export function errorText(error: unknown): string {
  if (error instanceof Refused) return [error.message, error.hint].filter(Boolean).join(" ");
  return error instanceof Error ? error.message : String(error);
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed && trimmed[0]!.toUpperCase() + trimmed.slice(1) + (/[.?!…:]$/.test(trimmed) ? "" : ".");
}
