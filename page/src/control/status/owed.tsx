import { count } from "../../format.ts";
import { type ControlPage, to } from "../../router.ts";
import { Icon, type IconName } from "../../ui/icon.tsx";
import type { Status } from "../../wire.ts";
import { Section } from "../parts/section.tsx";

interface Debt {
  icon: IconName;
  amount: number;
  one: string;
  many: string;
  page: ControlPage | null;
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

function debtsOf({ obligations, questions = 0, processes = 0 }: Status): readonly Debt[] {
  const { turns = 0, deliveries = 0, segments = 0 } = obligations ?? {};
  return [
    { icon: "chat", amount: turns, one: "answer to give", many: "answers to give", page: null },
    { icon: "question", amount: questions, one: "question for you", many: "questions for you", page: "approvals" },
    { icon: "send", amount: deliveries, one: "message to send", many: "messages to send", page: "deliveries" },
    { icon: "brain", amount: segments, one: "memory to keep", many: "memories to keep", page: "memory" },
    { icon: "terminal", amount: processes, one: "background command", many: "background commands", page: "processes" },
  ];
}

function Tile({ debt: { icon, amount, one, many, page } }: { debt: Debt }) {
  const inside = (
    <>
      <Icon name={icon} />
      <strong>{count(amount)}</strong>
      <span>{amount === 1 ? one : many}</span>
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
