/** Doctor: checks everything the gateway depends on, and says how to fix what it finds. */

import "./doctor.css";
import { useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { duration, plural } from "../format.ts";
import { to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Command, Spinner, Time } from "../ui/parts.tsx";
import { useAction } from "../ui/requests.ts";
import type { Finding, Level, Report } from "../wire.ts";
import { ErrorNotice, PageHead } from "./parts.tsx";

/** It asks providers and disks, which may be slow. */
const TIMEOUT_MS = 90_000;
/** Advice with this prefix is a command. */
const COMMAND = "run: ";
const ORDER: readonly Level[] = ["fail", "warn", "ok"];
const ICONS: Record<Level, IconName> = { fail: "warning", warn: "info", ok: "check" };
const WORDS: Record<Level, string> = { fail: "Failed", warn: "Warning", ok: "OK" };

interface CheckResult {
  report: Report;
  at: number;
  tookMs: number;
}

export function DoctorPage(_: { id: string | null }) {
  const examined = useSignal<CheckResult | null>(null);
  const { busy, problem, run } = useAction();
  const check = useCallback(
    () =>
      run(async () => {
        examined.value = await runChecks();
      }),
    [run, examined],
  );
  useEffect(() => {
    check();
  }, [check]);
  return (
    <>
      <PageHead
        title="Doctor"
        lead="Checks everything the gateway depends on, changes nothing, and says how to fix problems."
      >
        <Button icon="retry" disabled={busy.value} onClick={check}>
          {busy.value ? "Checking…" : "Check again"}
        </Button>
      </PageHead>
      {problem.value !== undefined && <ErrorNotice error={problem.value} onRetry={check} />}
      {busy.value && !examined.value && <Waiting />}
      {examined.value && <Findings examined={examined.value} busy={busy.value} />}
    </>
  );
}

async function runChecks(): Promise<CheckResult> {
  const began = Date.now();
  const report = await get<Report>("/api/doctor", { timeoutMs: TIMEOUT_MS });
  return { report, at: began, tookMs: Date.now() - began };
}

function Waiting() {
  return (
    <p class="examining">
      <Spinner label="Checking" /> Checking the configuration, the store, the model, channels, disk and clock. This can
      take a few seconds.
    </p>
  );
}

function Findings({ examined: { report, at, tookMs }, busy }: { examined: CheckResult; busy: boolean }) {
  const sorted = ORDER.flatMap((level) => report.checks.filter((each) => each.level === level));
  return (
    <section class="findings" aria-label="Findings" aria-busy={busy}>
      <p class={report.ok ? "verdict ok" : "verdict fail"} role="status">
        <Icon name={report.ok ? "check" : "warning"} />
        <span>{verdict(report)}</span>
        <span class="faint">
          <Time at={at} />, in {duration(tookMs)}
        </span>
      </p>
      <ul>
        {sorted.map((each) => (
          <li key={`${each.name} ${each.found}`}>
            <FindingRow finding={each} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function verdict({ checks }: Report): string {
  const count = (level: Level) => checks.filter((each) => each.level === level).length;
  const [bad, odd] = [count("fail"), count("warn")];
  if (bad) return `${plural(bad, "problem")}${odd ? `, ${plural(odd, "warning")}` : ""}.`;
  return odd ? `Working. ${plural(odd, "warning")}.` : "Working. No problems found.";
}

function FindingRow({ finding }: { finding: Finding }) {
  return (
    <div class={`finding ${finding.level}`}>
      <span class="finding-sign" title={WORDS[finding.level]}>
        <Icon name={ICONS[finding.level]} />
        <span class="unseen">{WORDS[finding.level]}:</span>
      </span>
      <div>
        <h2>{finding.name}</h2>
        <p>{finding.found}</p>
        {finding.advice && <Advice finding={finding} advice={finding.advice} />}
      </div>
    </div>
  );
}

/** The advice: a command to copy, a link to the page that fixes it, or a sentence. */
function Advice({ finding, advice }: { finding: Finding; advice: string }) {
  const command = advice.startsWith(COMMAND) && !advice.includes("\n") ? advice.slice(COMMAND.length) : null;
  if (command) return <Command text={command} />;
  return (
    <p class="advice">
      {advice}
      {finding.name === "model" && (
        <>
          {" "}
          <a href={to.setup()}>Choose a model</a>
        </>
      )}
    </p>
  );
}
