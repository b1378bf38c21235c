/** Deliveries to a route: the ones that came, and a sample that can be sent. */

import { useEffect, useState } from "preact/hooks";
import { post, Refused, Unanswered } from "../../api.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Badge, Empty, Field, Time, type Tone } from "../../ui/parts.tsx";
import { useAction, useLoaded } from "../../ui/requests.ts";
import type {
  PageOfTurnView,
  Refusal,
  RouteView,
  SessionView,
  Signed,
  Taken,
  Transcript,
  TurnState,
  TurnView,
} from "../../wire.ts";
import { type Column, Listing, Table, useList } from "../list.tsx";
import { ErrorNotice } from "../parts.tsx";

/** Each delivery has its own conversation, whose key names the route. */
const keyOf = (route: string, delivery: string) => `webhook:${route}:${delivery}`;

const COLUMNS: readonly Column<SessionView>[] = [
  { title: "Received", cell: (each) => <Time at={each.created_at} /> },
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

/** Recent deliveries to a route. */
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
    <Empty icon="webhook" title="No deliveries yet">
      Deliveries to the route’s address appear here with their result, as long as their conversation is kept.
    </Empty>
  );
}

const POLL_MS = 1_500;
const TONES: Record<TurnState, Tone> = {
  queued: "note",
  running: "busy",
  waiting: "busy",
  completed: "good",
  failed: "bad",
  cancelled: "plain",
  interrupted: "busy",
};
const SETTLED: ReadonlySet<TurnState> = new Set(["completed", "failed", "cancelled"]);

const isSettled = (turn: TurnView | undefined) => turn !== undefined && SETTLED.has(turn.state);

/** Poll the single turn of a delivery until it ends. */
function useTurn(sessionId: string): TurnView | undefined {
  const path = `/api/turns?session=${sessionId}&limit=1`;
  return usePolledUntil<PageOfTurnView>(path, POLL_MS, ({ items }) => isSettled(items[0]))?.items[0];
}

/** The status of a delivery's turn. */
function TurnBadge({ turn }: { turn: TurnView | undefined }) {
  if (!turn) return <Badge>…</Badge>;
  return (
    <span title={turn.error ?? undefined}>
      <Badge tone={TONES[turn.state]}>{turn.state === "completed" ? "answered" : turn.state}</Badge>
    </span>
  );
}

function usePolledUntil<T>(path: string, everyMs: number, isOver: (value: T) => boolean): T | undefined {
  const [over, setOver] = useState(false);
  const [loaded] = useLoaded<T>(path, over ? undefined : everyMs);
  const { value } = loaded.value;
  const settled = value !== undefined && isOver(value);
  useEffect(() => setOver(settled), [settled]);
  return value;
}

/** A sample delivery: signed, sent to the route, and followed until it is answered. */
export function Trial({ route }: { route: RouteView }) {
  const [body, setBody] = useState(() => JSON.stringify(samplePayload(route), null, 2));
  const [handover, setHandover] = useState<Handover | null>(null);
  const { busy, problem, run } = useAction();
  const send = async (event: Event) => {
    event.preventDefault();
    setHandover((await run(() => handOver(route, body))) ?? null);
  };
  return (
    <form class="route-trial" onSubmit={send}>
      <Field
        label="Payload"
        hint="It is signed with the route’s secret and sent to its address, as the sender would do."
      >
        {(control) => (
          <textarea
            {...control}
            rows={Math.min(Math.max(body.split("\n").length, 4), 16)}
            spellcheck={false}
            value={body}
            onInput={(event) => setBody(event.currentTarget.value)}
          />
        )}
      </Field>
      {!route.enabled && <p class="faint">The route is paused and accepts nothing until it is resumed.</p>}
      <div>
        <Button type="submit" icon="send" disabled={busy.value || !route.enabled || !body.trim()}>
          {busy.value ? "Sending…" : "Send test delivery"}
        </Button>
      </div>
      {problem.value !== undefined && <ErrorNotice error={problem.value} />}
      {handover && <Outcome key={handover.answer.delivery_id} handover={handover} />}
    </form>
  );
}

/** What the sender was answered, and the result of the delivery. */
function Outcome({ handover: { status, answer } }: { handover: Handover }) {
  return (
    <div class="delivery-outcome" role="status">
      <p>
        <Badge tone={answer.status === "accepted" ? "good" : "note"}>
          {status} {answer.status}
        </Badge>{" "}
        as <code>{answer.delivery_id}</code>
      </p>
      {answer.status === "ignored" && <p>The route’s events or filters exclude it, so no turn was started.</p>}
      {Boolean(answer.missing?.length) && (
        <p>
          The prompt uses fields that were not sent: <code>{answer.missing?.join(", ")}</code>
        </p>
      )}
      {answer.session_id && answer.turn_id && <FollowedTurn sessionId={answer.session_id} turnId={answer.turn_id} />}
    </div>
  );
}

function FollowedTurn({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const turn = useTurn(sessionId);
  return (
    <>
      <p>
        <TurnBadge turn={turn} /> <a href={to.session(sessionId, turnId)}>Open the conversation</a>
      </p>
      {turn?.error && <p>{turn.error}</p>}
      {isSettled(turn) && <Answer sessionId={sessionId} turnId={turnId} />}
    </>
  );
}

function Answer({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const [loaded] = useLoaded<Transcript>(`/api/sessions/${sessionId}/messages`);
  const answers =
    loaded.value.value?.items.filter((each) => each.turn_id === turnId && each.role === "assistant") ?? [];
  if (!answers.length) return null;
  return <p class="delivery-said">{answers.map((each) => each.text?.trim()).join("\n")}</p>;
}

const PIECES = /\{\{|\}\}|\{([^{}]*)\}/g;
/** Placeholders that are not fields of the payload. */
const BUILT_IN = new Set(["__raw__", "event_type"]);
const NUMBER = /^\d+$/;

type Json = { [name: string]: Json } | Json[] | string;

/** Return the fields that a template names. */
export function fieldsOf(template: string): string[] {
  const found = [...template.matchAll(PIECES)].flatMap((match) => (match[1] ? [match[1].trim()] : []));
  return [...new Set(found)].filter((each) => each && !BUILT_IN.has(each));
}

/** Return a sample payload for a route. */
export function samplePayload(route: Pick<RouteView, "prompt" | "deliver" | "events">): Json {
  const payload: { [name: string]: Json } = route.events[0] ? { type: route.events[0] } : {};
  const fields = [...fieldsOf(route.prompt), ...fieldsOf(route.deliver)];
  for (const field of fields)
    putField(payload, field.split("."), `sample ${field.split(".").findLast((part) => !NUMBER.test(part)) ?? "value"}`);
  return fields.length ? payload : { ...payload, message: "Hello, is this working?" };
}

function putField(into: { [name: string]: Json } | Json[], [name = "", ...rest]: string[], value: string): void {
  const place = into as { [name: string]: Json };
  const existing = Object.hasOwn(place, name) ? place[name] : undefined;
  if (rest.length === 0) {
    if (existing === undefined) defineField(place, name, value);
    return;
  }
  const inner = typeof existing === "object" ? existing : NUMBER.test(rest[0]!) ? [] : {};
  defineField(place, name, inner);
  putField(inner, rest, value);
}

/** A field may have any name, even `__proto__`. */
function defineField(into: object, name: string, value: Json): void {
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}

const TIMEOUT_MS = 30_000;

interface Handover {
  status: number;
  answer: Taken;
}

/** Sign a body with the route's secret and send it.  Throws `Refused` with what the sender would be answered. */
async function handOver(route: RouteView, body: string): Promise<Handover> {
  const signed = await post<Signed>(`/api/webhooks/${encodeURIComponent(route.name)}/sign`, { body });
  const response = await postDelivery(route.path, signed);
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, (answer as Refusal | null)?.error);
  return { status: response.status, answer: answer as Taken };
}

async function postDelivery(path: string, { headers, body }: Signed): Promise<Response> {
  try {
    return await fetch(path, { method: "POST", headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    throw new Unanswered();
  }
}
