/** Status: the state of the gateway, its agent, and what it is doing. */

import "./status.css";
import { Unanswered } from "../../api.ts";
import { duration, fullMoment, lead, plural } from "../../format.ts";
import { to } from "../../router.ts";
import { statusText, statusTone } from "../../sessions/labels.tsx";
import { sessions } from "../../sessions/store.ts";
import { isOperator } from "../../sign_in/identity.ts";
import { Badge, Time, type Tone } from "../../ui/parts.tsx";
import type { AgentView, ClockOff, SessionView, Status } from "../../wire.ts";
import { gatewayStatus, refreshStatus } from "../gateway_status.ts";
import { ErrorNotice, Facts, PageHead, Section, Skeleton } from "../parts.tsx";
import { RestartButton } from "../restart.tsx";
import { Backlog, MessageAccount } from "./accounting.tsx";

export function StatusPage() {
  const { value, error } = gatewayStatus.value;
  return (
    <>
      <PageHead
        title={
          <>
            Status <State status={value} away={error !== undefined} />
          </>
        }
        lead="What is running, what is still to do, and whether every message is accounted for."
      >
        {isOperator.value && <RestartButton disabled={!value || error !== undefined} />}
      </PageHead>
      {error !== undefined && <NoAnswer error={error} hasStatus={value !== undefined} />}
      {value?.problem && <p class="problem">{value.problem}</p>}
      {value?.damage?.map((each) => (
        <p class="problem" key={each}>
          The store is damaged: {each}
        </p>
      ))}
      {value ? <StatusSections status={value} /> : error === undefined && <Skeleton lines={6} />}
    </>
  );
}

function NoAnswer({ error, hasStatus }: { error: unknown; hasStatus: boolean }) {
  if (!(error instanceof Unanswered) || !hasStatus) return <ErrorNotice error={error} onRetry={refreshStatus} />;
  return (
    <p class="status-away" role="status">
      The gateway is not responding. This is its last known status; it is checked continuously.
    </p>
  );
}

/** A person who is not the owner of the gateway learns only that it runs. */
function StatusSections({ status }: { status: Status }) {
  return (
    <>
      {status.obligations && (
        <>
          <MessageAccount status={status} />
          <Backlog status={status} />
        </>
      )}
      <Running />
      {status.agent?.model && <AgentFacts agent={status.agent} />}
      <GatewayFacts status={status} />
      {status.boot && status.boot.length > 0 && <BootReport lines={status.boot} />}
    </>
  );
}

function State({ status, away }: { status: Status | undefined; away: boolean }) {
  const [tone, word] = badgeOf(status, away);
  return <Badge tone={tone}>{word}</Badge>;
}

function badgeOf(status: Status | undefined, away: boolean): [Tone, string] {
  if (away) return ["bad", "Not responding"];
  if (!status) return ["plain", "Checking…"];
  if (status.state === "draining") return ["busy", status.drain?.restart ? "Restarting" : "Stopping"];
  if (status.problem) return ["bad", "Not ready"];
  return status.ready ? ["good", "Ready"] : ["busy", "Starting"];
}

/** The conversations that are active now. */
function Running() {
  const active = sessions.value.filter((session) => session.activity !== null);
  return (
    <Section title="Running">
      {active.length === 0 ? (
        <p class="panel faint">Nothing is running. Active conversations appear here.</p>
      ) : (
        <ul class="panel at-work">
          {active.map((session) => (
            <RunningRow key={session.id} session={session} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function RunningRow({ session }: { session: SessionView }) {
  return (
    <li class="at-work-row">
      <Badge tone={statusTone(session)}>{statusText(session)}</Badge>
      <a href={to.session(session.id)}>{session.label}</a>
      <span class="faint">{session.channel}</span>
      <span class="faint">
        <Time at={session.updated_at} as="relative" />
      </span>
    </li>
  );
}

const CONNECTED = /^connected/;

/** The agent: model, sandbox, tools and MCP servers. */
function AgentFacts({ agent }: { agent: AgentView }) {
  const { tools = [], mcp = {} } = agent;
  return (
    <Section title="The agent">
      <div class="panel">
        <Facts
          facts={[
            { name: "Model", value: <Model agent={agent} /> },
            { name: "Sandbox", value: agent.unsafe ? <Badge tone="bad">{agent.sandbox}</Badge> : agent.sandbox },
            { name: "Tools", value: tools.length > 0 && <Tools names={tools} /> },
            { name: "MCP servers", value: <Servers states={mcp} /> },
          ]}
        />
      </div>
    </Section>
  );
}

function Model({ agent }: { agent: AgentView }) {
  if (!agent.demonstration) return <>{agent.model}</>;
  return (
    <>
      The built-in demo. <a href={to.setup()}>Set up a real model</a>
    </>
  );
}

function Tools({ names }: { names: readonly string[] }) {
  return (
    <details>
      <summary>{plural(names.length, "tool")}</summary>
      <ul class="tool-names">
        {names.map((name) => (
          <li key={name}>
            <code>{name}</code>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Servers({ states }: { states: Record<string, string> }) {
  const names = Object.entries(states);
  if (names.length === 0) return <span class="faint">none configured</span>;
  return (
    <ul class="mcp-servers">
      {names.map(([name, state]) => (
        <li key={name}>
          {name} <Badge tone={CONNECTED.test(state) ? "good" : "bad"}>{state}</Badge>
        </li>
      ))}
    </ul>
  );
}

/** The process, and where its data is. */
function GatewayFacts({ status }: { status: Status }) {
  const { clocks_off: clocksOff = [] } = status;
  return (
    <Section title="The gateway">
      <div class="panel">
        <Facts
          facts={[
            {
              name: "Up for",
              value: <span title={fullMoment(status.started_at)}>{duration(status.uptime_s * 1_000)}</span>,
            },
            { name: "Version", value: status.version },
            { name: "Address", value: status.url },
            { name: "Store", value: status.store },
            { name: "Home", value: status.home },
            { name: "Node", value: <code>{status.node}</code> },
            { name: "Process", value: String(status.pid) },
            { name: "Clocks", value: clocksOff.length > 0 && <Clocks off={clocksOff} /> },
          ]}
        />
      </div>
    </Section>
  );
}

/** Nodes whose clock is wrong.  Nothing depends on it, but it should be set. */
function Clocks({ off }: { off: readonly ClockOff[] }) {
  return (
    <ul class="mcp-servers">
      {off.map(({ node, off_ms }) => (
        <li key={node}>
          <code>{node}</code> <Badge tone="bad">{lead(off_ms)}</Badge>
        </li>
      ))}
    </ul>
  );
}

/** The report of the last start. */
function BootReport({ lines }: { lines: readonly string[] }) {
  return (
    <Section title="Report of the last start">
      <ul class="panel boot-lines">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Section>
  );
}
