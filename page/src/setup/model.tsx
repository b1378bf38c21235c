import { useState } from "preact/hooks";
import { Trouble } from "../control/parts/trouble.tsx";
import { plural } from "../format.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/parts.tsx";
import type { Course } from "./course.ts";

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
