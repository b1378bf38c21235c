import { duration, fullMoment, lead, plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Badge } from "../../ui/parts.tsx";
import type { AgentView, ClockOff, Status } from "../../wire.ts";
import { Facts } from "../parts/facts.tsx";
import { Section } from "../parts/section.tsx";

const CONNECTED = /^connected/;

/** Who answers, and with what. */
export function Agent({ agent }: { agent: AgentView }) {
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
      The built-in demonstration. <a href={to.setup()}>Set up a real model</a>
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
  if (names.length === 0) return <span class="faint">none are configured</span>;
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

/** The process, and where it lives. */
export function House({ status }: { status: Status }) {
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

/** Which nodes have a clock that is off: nothing goes by it, and it wants to be set. */
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

/** What it found when it started. */
export function BootReport({ lines }: { lines: readonly string[] }) {
  return (
    <Section title="What it found at its start">
      <ul class="panel boot-lines">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Section>
  );
}
