/** One account of a chat platform: its state, what is wrong, its facts, and a test. */

import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { count } from "../../format.ts";
import { setOpen } from "../../frame/drawer.ts";
import { to } from "../../router.ts";
import { channelOf } from "../../sessions/labels.tsx";
import { filter } from "../../sessions/listing.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Badge, Time, WebLink } from "../../ui/parts.tsx";
import { useAction } from "../../ui/requests.ts";
import type { ChannelTrial, ChannelView } from "../../wire.ts";
import { ErrorNotice, Facts } from "../parts.tsx";
import { accountStatus } from "./states.ts";

export function AccountCard({ account }: { account: ChannelView }) {
  const status = accountStatus(account);
  const kind = channelOf(account.kind);
  return (
    <article class="panel card" aria-label={account.name}>
      <header class="channel-head">
        <Icon name={kind.icon} />
        <h2>{account.name}</h2>
        {account.kind !== account.name && <span class="faint">{kind.name}</span>}
        <Badge tone={status.tone}>{status.text}</Badge>
      </header>
      {(account.problem || status.advice) && <Trouble account={account} advice={status.advice} />}
      <Facts
        facts={[
          { name: "Bot", value: <BotName account={account} /> },
          { name: "Last answer of the platform", value: <LastAnswer account={account} /> },
          { name: "Waiting to be sent", value: <Pending account={account} /> },
          { name: "Home chat, for notices", value: account.home ?? "none" },
        ]}
      />
      <AccountActions account={account} />
    </article>
  );
}

function Trouble({ account, advice }: { account: ChannelView; advice: string }) {
  return (
    <div class={`channel-trouble ${accountStatus(account).tone}`}>
      {account.problem && <p class="channel-problem">{account.problem}.</p>}
      {advice && <p>{advice}</p>}
    </div>
  );
}

function BotName({ account: { bot_name, bot_url } }: { account: ChannelView }) {
  if (!bot_name && !bot_url) return <>not known yet</>;
  return (
    <>
      {bot_name && <span dir="auto">{bot_name}</span>} {bot_url && <WebLink url={bot_url} />}
    </>
  );
}

function LastAnswer({ account: { last_receive_at } }: { account: ChannelView }) {
  return last_receive_at === null ? <>never</> : <Time at={last_receive_at} as="relative" />;
}

function Pending({ account: { pending_deliveries } }: { account: ChannelView }) {
  if (pending_deliveries === 0) return <>nothing</>;
  return <a href={to.control("deliveries")}>{count(pending_deliveries)}</a>;
}

function AccountActions({ account }: { account: ChannelView }) {
  const testing = useAction();
  const [trial, setTrial] = useState<ChannelTrial | null>(null);
  const test = () => {
    setTrial(null);
    testing.run(async () =>
      setTrial(await post<ChannelTrial>(`/api/channels/${encodeURIComponent(account.name)}/test`)),
    );
  };
  return (
    <div>
      <div class="channel-actions">
        <Button icon="plane" disabled={testing.busy.value} onClick={test}>
          {testing.busy.value ? "Testing…" : "Test"}
        </Button>
        <Button icon="chat" onClick={() => showConversations(account.name)}>
          Conversations
        </Button>
        <a class="button quiet" href={to.control("settings", "channels")}>
          <Icon name="gear" size={17} />
          Settings
        </a>
      </div>
      <div aria-live="polite">
        {testing.problem.value !== undefined && <ErrorNotice error={testing.problem.value} />}
        {trial && <TestResult trial={trial} />}
      </div>
    </div>
  );
}

/** List the sessions of an account in the sidebar. */
function showConversations(channel: string): void {
  filter.value = { channel, archived: false };
  setOpen(true);
}

function TestResult({ trial }: { trial: ChannelTrial }) {
  if (trial.ok) {
    return (
      <p class="channel-result good">
        <Icon name="check" size={16} />
        <span>It works: the platform knows this account as {trial.bot_name ?? trial.bot_id}.</span>
      </p>
    );
  }
  return (
    <p class="channel-result bad">
      <Icon name="warning" size={16} />
      <span>
        It does not work: {trial.problem}. {trial.hint && `What to do: ${trial.hint}.`}
      </span>
    </p>
  );
}
