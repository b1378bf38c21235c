import { Trouble } from "../control/parts/trouble.tsx";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/parts.tsx";
import type { Course, Provider } from "./course.ts";

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
