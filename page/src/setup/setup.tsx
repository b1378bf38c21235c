/** The set-up wizard: provider, key, model, and a test before anything is saved. */

import { useEffect, useMemo } from "preact/hooks";
import { Pending } from "../control/parts.tsx";
import { RestartButton } from "../control/restart.tsx";
import { to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { WizardFrame } from "./frame.tsx";
import { ModelWizard } from "./model_wizard.ts";
import { AccessForm, ModelChoice, ModelTest, ProviderChoice } from "./steps.tsx";

const TITLES = { provider: "Provider", access: "Key", model: "Model", trial: "Try it" };

export function ModelSetup() {
  const wizard = useMemo(() => new ModelWizard(), []);
  useEffect(() => {
    wizard.load();
  }, [wizard]);
  if (!wizard.options.value) return <Pending error={wizard.problem.value} onRetry={wizard.load} />;
  return (
    <WizardFrame wizard={wizard} titles={TITLES}>
      <CurrentStep wizard={wizard} />
    </WizardFrame>
  );
}

function CurrentStep({ wizard }: { wizard: ModelWizard }) {
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

/** The choice is saved; the gateway applies it at its next start. */
function Saved({ wizard }: { wizard: ModelWizard }) {
  return (
    <div class="setup-end">
      <Icon name="check" size={32} />
      <h2>Saved</h2>
      <p>{wizard.model.value} will answer after a restart. It takes a moment; this page stays open.</p>
      <RestartButton label="Restart now" look="main" onBack={() => wizard.move("ready")} />
    </div>
  );
}

function Ready({ wizard }: { wizard: ModelWizard }) {
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
