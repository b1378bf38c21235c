import { count } from "../../format.ts";
import { to } from "../../router.ts";
import { Icon } from "../../ui/icon.tsx";
import type { Status, TurnState } from "../../wire.ts";
import { Section } from "../parts/section.tsx";
import { type Account, accountOf } from "./account.ts";

const WORDS: Record<TurnState, string> = {
  completed: "answered",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "cut off, to be resumed",
  queued: "queued",
  running: "running",
  waiting: "waiting for a person",
};

/** Every message that was ever accepted, and what became of it: nothing may be missing. */
export function Conservation({ status }: { status: Status }) {
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
        <Icon name="check" /> Checked: it adds up. No message was lost, and none was counted twice.
      </p>
    );
  }
  return (
    <p class="account-verdict bad">
      <Icon name="warning" />
      <span>
        It does not add up. Let the <a href={to.control("doctor")}>doctor</a> look at it, and keep a copy of the store.
      </span>
    </p>
  );
}
