/** Channels: the accounts of chat platforms, and the way to the set-up of one more bot. */

import "./channels.css";
import { ADD, to } from "../../router.ts";
import { BotSetup } from "../../setup/bot.tsx";
import { accountNames } from "../../setup/bot_wizard.ts";
import { Icon } from "../../ui/icon.tsx";
import { Empty } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import type { ChannelView, SettingsView } from "../../wire.ts";
import { Listing, useList } from "../list.tsx";
import { PageHead } from "../parts.tsx";
import { RestartToApply } from "../restart.tsx";
import { AccountCard } from "./account.tsx";

const ALL = { label: "Channels", href: to.control("channels") };
const LEAD = "Chat accounts through which people reach the agent from their phones.";

export function ChannelsPage({ id }: { id: string | null }) {
  if (id !== ADD) return <AccountsPage />;
  return (
    <>
      <PageHead title="Add a Telegram bot" lead="Three steps. Nothing changes until the last one." back={ALL} />
      <BotSetup />
    </>
  );
}

function AccountsPage() {
  const list = useList<ChannelView>("/api/channels");
  const accounts = list.listed.value.items;
  return (
    <>
      <PageHead title="Channels" lead={LEAD}>
        {accounts && (
          <a class="button main" href={to.addBot()}>
            <Icon name="plus" size={17} />
            Add a Telegram bot
          </a>
        )}
      </PageHead>
      {accounts && <Unstarted accounts={accounts} onStarted={list.refresh} />}
      <Listing list={list} empty={<NoAccounts />}>
        {(accounts) => (
          <ul class="cards">
            {accounts.map((account) => (
              <li key={account.name}>
                <AccountCard account={account} />
              </li>
            ))}
          </ul>
        )}
      </Listing>
    </>
  );
}

interface UnstartedProps {
  accounts: readonly ChannelView[];
  onStarted: () => unknown;
}

/** Says that settings were changed since the gateway started, and which accounts begin with the next start. */
function Unstarted({ accounts, onStarted }: UnstartedProps) {
  const [settings, reload] = useLoaded<SettingsView>("/api/settings");
  const view = settings.value.value;
  if (!view?.restart_needed) return null;
  const fresh = accountNames(view).filter((name) => !accounts.some((each) => each.name === name));
  const text = fresh.length > 0 ? `New after a restart: ${fresh.join(", ")}.` : "The settings were changed.";
  return (
    <div class="panel">
      <RestartToApply text={text} onBack={() => Promise.all([reload(), onStarted()])} />
    </div>
  );
}

function NoAccounts() {
  return (
    <Empty icon="chat" title="No chat accounts yet">
      With a bot you reach the agent from your phone. It takes two minutes, and only people you let in are answered.
    </Empty>
  );
}
