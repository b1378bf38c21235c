/** The set-up wizard of a Telegram bot: make it, paste its token, try it; then write to it and approve oneself. */

import { useEffect, useMemo } from "preact/hooks";
import { useList } from "../control/list.tsx";
import { ErrorNotice, Pending, TextField } from "../control/parts.tsx";
import { RequestList } from "../control/people/requests.tsx";
import { RestartButton } from "../control/restart.tsx";
import { to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Spinner, WebLink } from "../ui/parts.tsx";
import { useLoaded } from "../ui/requests.ts";
import type { ChannelTrial, ChannelView, PairingView, PersonView } from "../wire.ts";
import { BotWizard, tokenIn } from "./bot_wizard.ts";
import { Failure, WizardFrame } from "./frame.tsx";

const POLL_MS = 2_000;
const BOT_FATHER = "https://t.me/BotFather";
const TITLES = { make: "Make a bot", token: "Paste its token", trial: "Try it" };

interface StepProps {
  wizard: BotWizard;
}

export function BotSetup() {
  const wizard = useMemo(() => new BotWizard(), []);
  useEffect(() => {
    wizard.load();
  }, [wizard]);
  if (!wizard.settings.value) return <Pending error={wizard.problem.value} onRetry={wizard.load} />;
  return (
    <WizardFrame wizard={wizard} titles={TITLES}>
      <CurrentStep wizard={wizard} />
    </WizardFrame>
  );
}

function CurrentStep({ wizard }: StepProps) {
  switch (wizard.step.value) {
    case "make":
      return <MakeBot wizard={wizard} />;
    case "token":
      return <TokenForm wizard={wizard} />;
    case "trial":
      return <BotTrial wizard={wizard} />;
    case "saved":
      return <Saved wizard={wizard} />;
    case "ready":
      return <Introduction wizard={wizard} />;
  }
}

/** Step one: what to do in Telegram. */
function MakeBot({ wizard }: StepProps) {
  return (
    <>
      <h2>Make a bot in Telegram</h2>
      <ol class="setup-todo">
        <li>
          Open <WebLink url={BOT_FATHER}>@BotFather</WebLink> in Telegram. It is the account with which Telegram makes
          bots.
        </li>
        <li>
          Send it <code>/newbot</code>.
        </li>
        <li>Choose a name, which people see, and a user name that ends in “bot”.</li>
        <li>It answers with a token, a long line like 123456:ABC-DEF… Copy it.</li>
      </ol>
      <div class="setup-actions">
        <Button look="main" onClick={() => wizard.move("token")}>
          I have the token
        </Button>
      </div>
    </>
  );
}

/** Step two: the token, and what is seldom needed. */
function TokenForm({ wizard }: StepProps) {
  const go = (event: Event) => {
    event.preventDefault();
    wizard.tryToken();
  };
  const isMissing = !wizard.token.value.trim() || wizard.nameProblem.value !== undefined;
  return (
    <form class="setup-form" onSubmit={go}>
      <h2>Paste the token</h2>
      <Token wizard={wizard} />
      {wizard.taken.value.length > 0 && <AccountName wizard={wizard} />}
      <details class="setup-more">
        <summary>More options</summary>
        <div class="setup-form">
          {wizard.taken.value.length === 0 && <AccountName wizard={wizard} />}
          <ApiBase wizard={wizard} />
        </div>
      </details>
      <div class="setup-actions">
        <Button onClick={() => wizard.move("make")}>Back</Button>
        <Button type="submit" look="main" disabled={isMissing}>
          Try it
        </Button>
      </div>
    </form>
  );
}

function Token({ wizard: { token } }: StepProps) {
  const hint = "It is kept as a secret in the configuration. The whole message of @BotFather is fine too.";
  return (
    <TextField
      label="Token"
      hint={hint}
      type="password"
      value={token.value}
      onInput={(text) => {
        token.value = text;
      }}
      onPaste={(event) => {
        event.preventDefault();
        token.value = tokenIn(event.clipboardData?.getData("text") ?? "");
      }}
    />
  );
}

function AccountName({ wizard: { name, nameProblem } }: StepProps) {
  return (
    <TextField
      label="Name of the account"
      hint="What the bot is called here. With several bots each has a name of its own."
      problem={nameProblem.value}
      maxLength={32}
      value={name.value}
      onInput={(text) => {
        name.value = text;
      }}
    />
  );
}

function ApiBase({ wizard: { apiBase } }: StepProps) {
  return (
    <TextField
      label="Address of the Bot API (optional)"
      hint="Only for a Bot API server of your own."
      placeholder="https://api.telegram.org"
      value={apiBase.value}
      onInput={(text) => {
        apiBase.value = text;
      }}
    />
  );
}

/** Step three: Telegram says who the bot is; then the account is saved. */
function BotTrial({ wizard }: StepProps) {
  const { trial, twin, nameProblem, problem, busy } = wizard;
  const isUsable = trial.value?.ok === true && !twin.value && !nameProblem.value;
  return (
    <>
      <h2>Try it</h2>
      {busy.value && !trial.value && (
        <p class="setup-waiting">
          <Spinner label="Asking Telegram" /> Asking Telegram who this bot is.
        </p>
      )}
      {trial.value && <TrialResult trial={trial.value} twin={twin.value} />}
      {nameProblem.value && <Failure lead="The account needs another name." text={nameProblem.value} />}
      {problem.value !== undefined && <ErrorNotice error={problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => wizard.move("token")}>Back</Button>
        <Button icon="retry" disabled={busy.value} onClick={wizard.tryToken}>
          Try again
        </Button>
        {isUsable && (
          <Button look="main" disabled={busy.value} onClick={wizard.save}>
            {busy.value ? "Saving…" : "Use this bot"}
          </Button>
        )}
      </div>
    </>
  );
}

function TrialResult({ trial, twin }: { trial: ChannelTrial; twin: ChannelView | null }) {
  if (twin) {
    const hint = "make another bot, and paste its token";
    return (
      <Failure lead={`This is the bot of the account ${twin.name}.`} text="A bot has one account only." hint={hint} />
    );
  }
  if (trial.ok) return <BotFound trial={trial} />;
  return <Failure lead="It does not work yet:" text={trial.problem} hint={trial.hint} />;
}

function BotFound({ trial }: { trial: ChannelTrial }) {
  return (
    <figure class="setup-said">
      <p class="setup-bot" dir="auto">
        {trial.bot_name}
      </p>
      {trial.bot_url && <WebLink url={trial.bot_url} />}
      <figcaption>
        <Icon name="check" size={16} /> Telegram knows this bot.
      </figcaption>
    </figure>
  );
}

/** The account is saved; the gateway opens it at its next start. */
function Saved({ wizard }: StepProps) {
  return (
    <div class="setup-end">
      <Icon name="check" size={32} />
      <h2>Saved</h2>
      <p>{wizard.trial.value?.bot_name} is connected after a restart. It takes a moment; this page stays open.</p>
      <RestartButton label="Restart now" look="main" onBack={() => wizard.move("ready")} />
    </div>
  );
}

/** The operator writes to the bot, and approves themselves here. */
function Introduction({ wizard }: StepProps) {
  const account = wizard.name.value.trim();
  const people = useList<PersonView>("/api/people", POLL_MS);
  const isIn = people.listed.value.items?.some((each) => each.account === account && each.role === "operator");
  if (isIn) return <Introduced bot={wizard.trial.value?.bot_name ?? account} />;
  return (
    <div class="setup-end">
      <Icon name="plane" size={32} />
      <h2>Now write to your bot</h2>
      <p>
        Send any message to {wizard.trial.value?.bot_name} in Telegram, and approve yourself here with{" "}
        <em>This is me</em>. You need not type the code that it answers with.
      </p>
      {wizard.trial.value?.bot_url && <WebLink url={wizard.trial.value.bot_url} />}
      <OwnRequests account={account} onDecided={people.refresh} />
    </div>
  );
}

function OwnRequests({ account, onDecided }: { account: string; onDecided: () => unknown }) {
  const requests = useList<PairingView>("/api/pairings", POLL_MS);
  const [channel] = useLoaded<ChannelView>(`/api/channels/${encodeURIComponent(account)}`, POLL_MS);
  const own = requests.listed.value.items?.filter((each) => each.account === account) ?? [];
  const problem = channel.value.value?.problem;
  const refresh = () => Promise.all([requests.refresh(), onDecided()]);
  if (problem) return <Failure lead="The bot is not connected:" text={problem} />;
  if (own.length > 0) return <RequestList requests={own} suggested="operator" onDecided={refresh} />;
  return (
    <p class="setup-waiting">
      <Spinner label="Waiting for your message" /> Waiting for your message…
    </p>
  );
}

function Introduced({ bot }: { bot: string }) {
  return (
    <div class="setup-end">
      <Icon name="check" size={32} />
      <h2>You are let in</h2>
      <p>What you wrote to {bot} is answered in Telegram, and its conversation is on this page.</p>
      <a class="button main" href={to.control("channels")}>
        Done
      </a>
    </div>
  );
}
