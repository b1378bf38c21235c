/** The accounting of all messages: every accepted message is settled or in flight, and what is still to be done. */

import { count } from "../../format.ts";
import { type ControlPage, to } from "../../router.ts";
import { Icon, type IconName } from "../../ui/icon.tsx";
import type { Status, TurnState } from "../../wire.ts";
import { backlogText } from "../memory/backlog.ts";
import { Section } from "../parts.tsx";

const WORDS: Record<TurnState, string> = {
  completed: "answered",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted, to be resumed",
  queued: "queued",
  running: "running",
  waiting: "waiting for an answer",
};

/** Every message that was ever accepted, and its result: none may be missing. */
export function MessageAccount({ status }: { status: Status }) {
  const account = accountOf(status);
  return (
    <Section title="Every message accounted for">
      <div class="panel account">
        <p class="account-sum">
          <Sum amount={account.accepted} name="accepted" />
          <Sum sign={account.right ? "=" : "≠"} amount={account.settled} name="settled" />
          <Sum sign="+" amount={account.inFlight} name="in flight" />
        </p>
        <Bar account={account} />
        <ul class="account-states">
          {account.states.map(({ state, count: amount }) => (
            <li key={state}>
              <span class="account-swatch" data-state={state} />
              {count(amount)} {WORDS[state]}
            </li>
          ))}
        </ul>
        <Verdict right={account.right} />
      </div>
    </Section>
  );
}

function Sum({ sign, amount, name }: { sign?: string; amount: number; name: string }) {
  return (
    <span class="account-term">
      {sign && <span class="account-sign">{sign}</span>} <strong>{count(amount)}</strong> <span>{name}</span>
    </span>
  );
}

function Bar({ account }: { account: Account }) {
  return (
    <div class="account-bar" aria-hidden="true">
      {account.states.map(({ state, count: amount }) => (
        <span key={state} class="account-stretch" data-state={state} style={{ flexGrow: amount }} />
      ))}
    </div>
  );
}

function Verdict({ right }: { right: boolean }) {
  if (right) {
    return (
      <p class="account-verdict good">
        <Icon name="check" /> Checked: the numbers add up. No message was lost or counted twice.
      </p>
    );
  }
  return (
    <p class="account-verdict bad">
      <Icon name="warning" />
      <span>
        The numbers do not add up. Run the <a href={to.control("doctor")}>doctor</a> and keep a copy of the store.
      </span>
    </p>
  );
}

const IN_FLIGHT: readonly TurnState[] = ["queued", "running", "waiting"];
const SETTLED: readonly TurnState[] = ["completed", "failed", "cancelled", "interrupted"];

interface Account {
  accepted: number;
  settled: number;
  inFlight: number;
  /** The number of turns per state, without zeros. */
  states: readonly { state: TurnState; count: number }[];
  /** Whether all counts agree. */
  right: boolean;
}

/** Return the account, counted again from the states of the turns. */
export function accountOf(status: Status): Account {
  const { accepted = 0, settled = 0, in_flight: inFlight = 0, turns = {} } = status;
  const sum = (states: readonly TurnState[]) => states.reduce((total, state) => total + (turns[state] ?? 0), 0);
  return {
    accepted,
    settled,
    inFlight,
    states: [...SETTLED, ...IN_FLIGHT]
      .map((state) => ({ state, count: turns[state] ?? 0 }))
      .filter(({ count }) => count),
    right: accepted === settled + inFlight && sum(SETTLED) === settled && sum(IN_FLIGHT) === inFlight,
  };
}

interface BacklogItem {
  icon: IconName;
  amount: number;
  one: string;
  many: string;
  page: ControlPage | null;
  /** The part that waits for something else first. */
  more?: string;
}

/** What the gateway still has to do. */
export function Backlog({ status }: { status: Status }) {
  return (
    <Section title="To do">
      <ul class="debts">
        {backlogItems(status).map((debt) => (
          <li key={debt.many}>
            <Tile debt={debt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function backlogItems({
  obligations,
  memory,
  questions = 0,
  pairings = 0,
  processes = 0,
}: Status): readonly BacklogItem[] {
  const { turns = 0, retrying = 0, deliveries = 0 } = obligations ?? {};
  const waiting = retrying ? `${count(retrying)} waiting for the model` : "";
  return [
    { icon: "chat", amount: turns, one: "answer to give", many: "answers to give", page: null, more: waiting },
    { icon: "question", amount: questions, one: "question for you", many: "questions for you", page: "approvals" },
    { icon: "people", amount: pairings, one: "person to let in", many: "people to let in", page: "people" },
    { icon: "send", amount: deliveries, one: "message to send", many: "messages to send", page: "deliveries" },
    {
      icon: "brain",
      amount: memory?.owed ?? 0,
      one: "conversation part to learn",
      many: "conversation parts to learn",
      page: "memory",
      more: backlogText(memory ?? {}, "owed"),
    },
    { icon: "terminal", amount: processes, one: "background command", many: "background commands", page: "processes" },
  ];
}

function Tile({ debt: { icon, amount, one, many, page, more } }: { debt: BacklogItem }) {
  const inside = (
    <>
      <Icon name={icon} />
      <strong>{count(amount)}</strong>
      <span>{amount === 1 ? one : many}</span>
      {more && <span class="faint">{more}</span>}
    </>
  );
  const className = amount > 0 ? "debt some" : "debt";
  return page ? (
    <a class={className} href={to.control(page)}>
      {inside}
    </a>
  ) : (
    <div class={className}>{inside}</div>
  );
}
