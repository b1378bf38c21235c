/** The steps of the set-up wizard. */

import { useState } from "preact/hooks";
import { ErrorNotice, TextField } from "../control/parts.tsx";
import { duration, plural } from "../format.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Badge, Spinner } from "../ui/parts.tsx";
import type { Trial as TrialView } from "../wire.ts";
import { Failure } from "./frame.tsx";
import { isInUse, type ModelWizard, type Provider } from "./model_wizard.ts";

/** Step one: the provider. */
export function ProviderChoice({ wizard }: { wizard: ModelWizard }) {
  const options = wizard.options.value!;
  return (
    <>
      <h2>Choose a provider</h2>
      <p class="setup-lead">
        {options.needed
          ? "A built-in demo answers for now. Choose where a real model runs: at a provider, or on your own machine."
          : `The current model is ${options.model.name}. You can change it at any time.`}
      </p>
      <ul class="setup-providers">
        {options.providers.map((each) => (
          <li key={each.name}>
            <button type="button" class="setup-provider" onClick={() => wizard.choose(each)}>
              <strong>{each.label}</strong>
              <span class="faint">{providerHint(each)}</span>
              {isInUse(options, each) && <Badge tone="good">in use</Badge>}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function providerHint(provider: Provider): string {
  if (provider.has_key && provider.needs_key) return "key already set";
  if (provider.needs_key) return "needs a key";
  return provider.base_url || "at your own address";
}

/** Step two: the provider's address and key. */
export function AccessForm({ wizard }: { wizard: ModelWizard }) {
  const provider = wizard.provider.value!;
  const go = (event: Event) => {
    event.preventDefault();
    wizard.listModels();
  };
  return (
    <form class="setup-form" onSubmit={go}>
      <h2>{provider.label}</h2>
      {provider.needs_address && <Address wizard={wizard} />}
      <Key wizard={wizard} />
      {!provider.needs_address && <Address wizard={wizard} />}
      {wizard.problem.value !== undefined && <ErrorNotice error={wizard.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => wizard.move("provider")}>Back</Button>
        <Button type="submit" look="main" disabled={wizard.busy.value || isMissing(wizard)}>
          {wizard.busy.value ? "Loading models…" : "Continue"}
        </Button>
      </div>
    </form>
  );
}

function isMissing(wizard: ModelWizard): boolean {
  const provider = wizard.provider.value!;
  const needsKey = provider.needs_key && !provider.has_key && !wizard.key.value.trim();
  return needsKey || (provider.needs_address && !wizard.baseUrl.value.trim());
}

function Key({ wizard }: { wizard: ModelWizard }) {
  const provider = wizard.provider.value!;
  return (
    <TextField
      label={provider.needs_key ? "Key" : "Key (optional)"}
      hint={keyHint(provider)}
      type="password"
      placeholder={provider.has_key ? "current key" : ""}
      value={wizard.key.value}
      onInput={(text) => {
        wizard.key.value = text;
      }}
    />
  );
}

function keyHint({ has_key, key_hint, key_variable }: Provider): string | undefined {
  if (has_key) return "Leave it empty to use the current key.";
  if (!key_hint) return undefined;
  return `Get one at ${key_hint}. You can also set the environment variable ${key_variable} for the gateway.`;
}

function Address({ wizard }: { wizard: ModelWizard }) {
  const provider = wizard.provider.value!;
  const usual = !provider.needs_address;
  const hint = usual ? "Only if it is not the default address." : "The address of its API.";
  return (
    <TextField
      label={usual ? "Address (optional)" : "Address"}
      hint={hint}
      type="url"
      placeholder="https://…"
      value={wizard.baseUrl.value}
      onInput={(text) => {
        wizard.baseUrl.value = text;
      }}
    />
  );
}

/** At most this many are listed; a search finds the others. */
const SHOWN_MAX = 60;

/** Step three: the model. */
export function ModelChoice({ wizard }: { wizard: ModelWizard }) {
  const { models, problem, hint } = wizard.models.value!;
  const go = (event: Event) => {
    event.preventDefault();
    wizard.testModel();
  };
  return (
    <form class="setup-form" onSubmit={go}>
      <h2>Choose a model</h2>
      {problem && (
        <p class="setup-note" role="note">
          The models could not be listed: {problem}. To go on, {hint}, or type the name of a model.
        </p>
      )}
      {models.length > 0 && <ModelList models={models} wizard={wizard} />}
      <TextField
        label="Model"
        hint={`As the provider spells it, such as ${wizard.provider.value!.example}`}
        value={wizard.model.value}
        onInput={(text) => wizard.chooseModel(text)}
      />
      {wizard.problem.value !== undefined && <ErrorNotice error={wizard.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => wizard.move("access")}>Back</Button>
        <Button type="submit" look="main" disabled={!wizard.model.value.trim()}>
          Try it
        </Button>
      </div>
    </form>
  );
}

function ModelList({ models, wizard }: { models: readonly string[]; wizard: ModelWizard }) {
  const [searched, setSearched] = useState("");
  const found = models.filter((each) => each.toLowerCase().includes(searched.trim().toLowerCase()));
  return (
    <div class="setup-models">
      {models.length > 8 && (
        <input
          class="input"
          type="search"
          placeholder={`Search ${plural(models.length, "model")}`}
          aria-label="Search models"
          value={searched}
          onInput={(event) => setSearched(event.currentTarget.value)}
        />
      )}
      <fieldset class="setup-list">
        <legend class="unseen">Models</legend>
        {found.slice(0, SHOWN_MAX).map((each) => (
          <label key={each} class="setup-item">
            <input
              type="radio"
              name="model"
              checked={wizard.model.value === each}
              onChange={() => wizard.chooseModel(each)}
            />
            {each}
          </label>
        ))}
        {found.length === 0 && <p class="faint">No results.</p>}
        {found.length > SHOWN_MAX && <p class="faint">and {found.length - SHOWN_MAX} more</p>}
      </fieldset>
    </div>
  );
}

/** Step four: a test question, then saving. */
export function ModelTest({ wizard }: { wizard: ModelWizard }) {
  const trial = wizard.trial.value;
  return (
    <>
      <h2>{wizard.model.value}</h2>
      {!trial && wizard.problem.value === undefined && (
        <p class="setup-waiting">
          <Spinner label="Testing" /> Testing the model. This takes longer if it has to be loaded first.
        </p>
      )}
      {trial?.ok && <Answered trial={trial} />}
      {trial?.ok === false && <Failure lead="It did not answer:" text={trial.problem} hint={trial.hint} />}
      {wizard.problem.value !== undefined && <ErrorNotice error={wizard.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => wizard.move("model")}>Back</Button>
        <Button icon="retry" disabled={wizard.busy.value} onClick={wizard.testModel}>
          Try again
        </Button>
        {trial && (
          <Button look={trial.ok ? "main" : "quiet"} disabled={wizard.busy.value} onClick={wizard.save}>
            {trial.ok ? "Use this model" : "Use it anyway"}
          </Button>
        )}
      </div>
    </>
  );
}

function Answered({ trial }: { trial: TrialView }) {
  return (
    <figure class="setup-said">
      <blockquote>{trial.said}</blockquote>
      <figcaption>
        <Icon name="check" size={16} /> It answered in {duration(trial.took_ms)}.
      </figcaption>
    </figure>
  );
}
