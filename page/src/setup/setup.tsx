/** The set-up wizard: provider, key, model, and a test before anything is saved. */

import "./setup.css";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Pending } from "../control/parts.tsx";
import { RestartButton } from "../control/restart.tsx";
import { to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { AccessForm, ModelChoice, ModelTest, ProviderChoice } from "./steps.tsx";
import { SetupWizard, STEPS, type Step } from "./wizard.ts";

export function ModelSetup() {
  const wizard = useMemo(() => new SetupWizard(), []);
  useEffect(() => {
    wizard.load();
  }, [wizard]);
  if (!wizard.options.value) return <Pending error={wizard.problem.value} onRetry={wizard.load} />;
  return (
    <div class="setup">
      <Steps wizard={wizard} />
      <StepFrame key={wizard.step.value} wizard={wizard} />
    </div>
  );
}

/** A step takes the focus before the next key, so that no input is lost. */
function StepFrame({ wizard }: { wizard: SetupWizard }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const first = element.current?.querySelector<HTMLElement>("input, .setup-end .button");
    (first ?? element.current)?.focus({ preventScroll: true });
  }, []);
  return (
    <div ref={element} class="setup-step" tabIndex={-1}>
      <CurrentStep wizard={wizard} />
    </div>
  );
}

function CurrentStep({ wizard }: { wizard: SetupWizard }) {
  switch (wizard.step.value) {
    case "provider":
      return <ProviderChoice wizard={wizard} />;
    case "access":
      return <AccessForm wizard={wizard} />;
    case "model":
      return <ModelChoice wizard={wizard} />;
    case "trial":
      return <ModelTest wizard={wizard} />;
    case "saved":
      return <Saved wizard={wizard} />;
    case "ready":
      return <Ready wizard={wizard} />;
  }
}

const TITLES = { provider: "Provider", access: "Key", model: "Model", trial: "Try it" };

/** The progress; earlier steps can be opened again. */
function Steps({ wizard }: { wizard: SetupWizard }) {
  const at = (STEPS as readonly Step[]).indexOf(wizard.step.value);
  const isOver = at < 0;
  return (
    <ol class="setup-steps" aria-label="Steps">
      {STEPS.map((step, number) => (
        <li key={step} data-done={isOver || number < at} aria-current={number === at ? "step" : undefined}>
          <button type="button" disabled={isOver || number >= at} onClick={() => wizard.back(step)}>
            <span class="setup-sign">{isOver || number < at ? <Icon name="check" size={14} /> : number + 1}</span>
            {TITLES[step]}
          </button>
        </li>
      ))}
    </ol>
  );
}

/** The choice is saved; the gateway applies it at its next start. */
function Saved({ wizard }: { wizard: SetupWizard }) {
  return (
    <div class="setup-end">
      <Icon name="check" size={32} />
      <h2>Saved</h2>
      <p>{wizard.model.value} will answer after a restart. It takes a moment; this page stays open.</p>
      <RestartButton label="Restart now" look="main" onBack={() => wizard.back("ready")} />
    </div>
  );
}

function Ready({ wizard }: { wizard: SetupWizard }) {
  return (
    <div class="setup-end">
      <Icon name="chat" size={32} />
      <h2>Ready</h2>
      <p>{wizard.model.value} is ready.</p>
      <a class="button main" href={to.new()}>
        Say hello
      </a>
    </div>
  );
}
