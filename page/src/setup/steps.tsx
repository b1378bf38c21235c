import { Icon } from "../ui/icon.tsx";
import { type Course, STEPS, type Step } from "./course.ts";

const TITLES = { provider: "Provider", access: "Key", model: "Model", trial: "Try it" };

/** Where in its course a set-up is; a step that was made can be made again. */
export function Steps({ course }: { course: Course }) {
  const at = (STEPS as readonly Step[]).indexOf(course.step.value);
  const isOver = at < 0;
  return (
    <ol class="setup-steps" aria-label="Steps">
      {STEPS.map((step, number) => (
        <li key={step} data-done={isOver || number < at} aria-current={number === at ? "step" : undefined}>
          <button type="button" disabled={isOver || number >= at} onClick={() => course.back(step)}>
            <span class="setup-sign">{isOver || number < at ? <Icon name="check" size={14} /> : number + 1}</span>
            {TITLES[step]}
          </button>
        </li>
      ))}
    </ol>
  );
}
