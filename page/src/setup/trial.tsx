import { Trouble } from "../control/parts/trouble.tsx";
import { duration } from "../format.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Spinner } from "../ui/parts.tsx";
import type { Trial as TrialView } from "../wire.ts";
import type { Course } from "./course.ts";

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
