import { count } from "../../format.ts";
import { type ControlPage, to } from "../../router.ts";
import { Icon, type IconName } from "../../ui/icon.tsx";
import type { Status } from "../../wire.ts";
import { inWords } from "../memory/debt.ts";
import { Section } from "../parts/section.tsx";

interface Debt {
  icon: IconName;
  amount: number;
  one: string;
  many: string;
  page: ControlPage | null;
  /** What waits for something else first. */
  more?: string;
}

/** What the gateway still has to do. */
export function Owed({ status }: { status: Status }) {
  return (
    <Section title="Still to be done">
      <ul class="debts">
        {debtsOf(status).map((debt) => (
          <li key={debt.many}>
            <Tile debt={debt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function debtsOf({ obligations, memory, questions = 0, processes = 0 }: Status): readonly Debt[] {
  const { turns = 0, retrying = 0, deliveries = 0 } = obligations ?? {};
  const waiting = retrying ? `${count(retrying)} waiting for the model` : "";
  return [
    { icon: "chat", amount: turns, one: "answer to give", many: "answers to give", page: null, more: waiting },
    { icon: "question", amount: questions, one: "question for you", many: "questions for you", page: "approvals" },
    { icon: "send", amount: deliveries, one: "message to send", many: "messages to send", page: "deliveries" },
    {
      icon: "brain",
      amount: memory?.owed ?? 0,
      one: "memory segment owed",
      many: "memory segments owed",
      page: "memory",
      more: inWords(memory ?? {}, "owed"),
    },
    { icon: "terminal", amount: processes, one: "background command", many: "background commands", page: "processes" },
  ];
}

function Tile({ debt: { icon, amount, one, many, page, more } }: { debt: Debt }) {
  const inside = (
    <>
      <Icon name={icon} />
      <strong>{count(amount)}</strong>
      <span>{amount === 1 ? one : many}</span>
      {more && <span class="faint">{more}</span>}
    </>
  );
  const look = amount > 0 ? "debt some" : "debt";
  return page ? (
    <a class={look} href={to.control(page)}>
      {inside}
    </a>
  ) : (
    <div class={look}>{inside}</div>
  );
}
