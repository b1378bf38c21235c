/** The steps of the set-up wizard. */

import { useState } from "preact/hooks";
import { Trouble } from "../control/parts.tsx";
import { duration, plural } from "../format.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Badge, Field, Spinner } from "../ui/parts.tsx";
import type { Trial as TrialView } from "../wire.ts";
import { type Course, isInUse, type Provider } from "./wizard.ts";

/** The first step: who answers. */
export function ProviderChoice({ course }: { course: Course }) {
  const offer = course.offer.value!;
  return (
    <>
      <h2>Who shall answer?</h2>
      <p class="setup-lead">
        {offer.needed
          ? "For now a built-in demonstration answers. Choose where a real model runs: at a provider, or on a machine of yours."
          : `Now it is ${offer.model.name}. Choose another at any time.`}
      </p>
      <ul class="setup-providers">
        {offer.providers.map((each) => (
          <li key={each.name}>
            <button type="button" class="setup-provider" onClick={() => course.choose(each)}>
              <strong>{each.label}</strong>
              <span class="faint">{told(each)}</span>
              {isInUse(offer, each) && <Badge tone="good">in use</Badge>}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function told(provider: Provider): string {
  if (provider.has_key && provider.needs_key) return "its key is there already";
  if (provider.needs_key) return "with a key";
  return provider.base_url || "at an address of your own";
}

/** The second step: where the provider is, and the key that it asks for. */
export function Access({ course }: { course: Course }) {
  const provider = course.provider.value!;
  const go = (event: Event) => {
    event.preventDefault();
    course.list();
  };
  return (
    <form class="setup-form" onSubmit={go}>
      <h2>{provider.label}</h2>
      {provider.needs_address && <Address course={course} />}
      <Key course={course} />
      {!provider.needs_address && <Address course={course} />}
      {course.problem.value !== undefined && <Trouble error={course.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => course.back("provider")}>Back</Button>
        <Button type="submit" look="main" disabled={course.busy.value || isMissing(course)}>
          {course.busy.value ? "Asking for its models…" : "Continue"}
        </Button>
      </div>
    </form>
  );
}

function isMissing(course: Course): boolean {
  const provider = course.provider.value!;
  const needsKey = provider.needs_key && !provider.has_key && !course.key.value.trim();
  return needsKey || (provider.needs_address && !course.baseUrl.value.trim());
}

function Key({ course }: { course: Course }) {
  const provider = course.provider.value!;
  return (
    <Field label={provider.needs_key ? "Key" : "Key (if it asks for one)"} hint={keyHint(provider)}>
      {(control) => (
        <input
          {...control}
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder={provider.has_key ? "the one that is there" : ""}
          value={course.key.value}
          onInput={(event) => {
            course.key.value = event.currentTarget.value;
          }}
        />
      )}
    </Field>
  );
}

function keyHint({ has_key, key_hint, key_variable }: Provider): string | undefined {
  if (has_key) return "Leave it empty to go on with the key that is there.";
  if (!key_hint) return undefined;
  return `You get one at ${key_hint}. The gateway also takes it from ${key_variable} in its environment, when it starts.`;
}

function Address({ course }: { course: Course }) {
  const provider = course.provider.value!;
  const usual = !provider.needs_address;
  const hint = usual ? "Only where it is somewhere else than usual." : "Where its API answers.";
  return (
    <Field label={usual ? "Address (optional)" : "Address"} hint={hint}>
      {(control) => (
        <input
          {...control}
          type="url"
          autocomplete="off"
          spellcheck={false}
          placeholder="https://…"
          value={course.baseUrl.value}
          onInput={(event) => {
            course.baseUrl.value = event.currentTarget.value;
          }}
        />
      )}
    </Field>
  );
}

/** More cannot be looked through; a few letters find the rest. */
const SHOWN_MAX = 60;

/** The third step: which of its models. */
export function ModelChoice({ course }: { course: Course }) {
  const { models, problem, hint } = course.models.value!;
  const go = (event: Event) => {
    event.preventDefault();
    course.test();
  };
  return (
    <form class="setup-form" onSubmit={go}>
      <h2>Which model?</h2>
      {problem && (
        <p class="setup-note" role="note">
          Its models could not be listed: {problem}. To go on, {hint}, or write the name of one.
        </p>
      )}
      {models.length > 0 && <Found models={models} course={course} />}
      <Field label="Model" hint={`As the provider writes it, like ${course.provider.value!.example}`}>
        {(control) => (
          <input
            {...control}
            autocomplete="off"
            spellcheck={false}
            value={course.model.value}
            onInput={(event) => course.name(event.currentTarget.value)}
          />
        )}
      </Field>
      {course.problem.value !== undefined && <Trouble error={course.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => course.back("access")}>Back</Button>
        <Button type="submit" look="main" disabled={!course.model.value.trim()}>
          Try it
        </Button>
      </div>
    </form>
  );
}

function Found({ models, course }: { models: readonly string[]; course: Course }) {
  const [wanted, setWanted] = useState("");
  const found = models.filter((each) => each.toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <div class="setup-models">
      {models.length > 8 && (
        <input
          class="input"
          type="search"
          placeholder={`Search ${plural(models.length, "model")}`}
          aria-label="Search models"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      )}
      <fieldset class="setup-list">
        <legend class="unseen">Models</legend>
        {found.slice(0, SHOWN_MAX).map((each) => (
          <label key={each} class="setup-item">
            <input type="radio" name="model" checked={course.model.value === each} onChange={() => course.name(each)} />
            {each}
          </label>
        ))}
        {found.length === 0 && <p class="faint">None is called that.</p>}
        {found.length > SHOWN_MAX && <p class="faint">and {found.length - SHOWN_MAX} more</p>}
      </fieldset>
    </div>
  );
}

/** The last step: the model is asked something, and then it can be kept. */
export function Trial({ course }: { course: Course }) {
  const trial = course.trial.value;
  return (
    <>
      <h2>{course.model.value}</h2>
      {!trial && course.problem.value === undefined && (
        <p class="setup-waiting">
          <Spinner label="Asking it" /> Asking it to say something. One that has to be loaded first takes a while.
        </p>
      )}
      {trial && (trial.ok ? <Answered trial={trial} /> : <Failed trial={trial} />)}
      {course.problem.value !== undefined && <Trouble error={course.problem.value} />}
      <div class="setup-actions">
        <Button onClick={() => course.back("model")}>Back</Button>
        <Button icon="retry" disabled={course.busy.value} onClick={course.test}>
          Try again
        </Button>
        {trial && (
          <Button look={trial.ok ? "main" : "quiet"} disabled={course.busy.value} onClick={course.save}>
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

function Failed({ trial }: { trial: TrialView }) {
  return (
    <div class="setup-failed" role="alert">
      <p>
        <strong>It did not answer:</strong> {trial.problem}
      </p>
      {trial.hint && <p>What to do: {trial.hint}.</p>}
    </div>
  );
}
