/** The set-up wizard: provider, key, model, and a test before anything is saved. */

import "./setup.css";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Pending } from "../control/parts.tsx";
import { RestartButton } from "../control/restart.tsx";
import { to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { Access, ModelChoice, ProviderChoice, Trial } from "./steps.tsx";
import { Course, STEPS, type Step } from "./wizard.ts";

export function ModelSetup() {
  const course = useMemo(() => new Course(), []);
  useEffect(() => {
    course.begin();
  }, [course]);
  if (!course.offer.value) return <Pending error={course.problem.value} onRetry={course.begin} />;
  return (
    <div class="setup">
      <Steps course={course} />
      <Stage key={course.step.value} course={course} />
    </div>
  );
}

/** A step that takes the focus when it appears, before the next key: what is typed stays in the field it was typed in. */
function Stage({ course }: { course: Course }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const first = element.current?.querySelector<HTMLElement>("input, .setup-end .button");
    (first ?? element.current)?.focus({ preventScroll: true });
  }, []);
  return (
    <div ref={element} class="setup-step" tabIndex={-1}>
      <Current course={course} />
    </div>
  );
}

function Current({ course }: { course: Course }) {
  switch (course.step.value) {
    case "provider":
      return <ProviderChoice course={course} />;
    case "access":
      return <Access course={course} />;
    case "model":
      return <ModelChoice course={course} />;
    case "trial":
      return <Trial course={course} />;
    case "saved":
      return <Saved course={course} />;
    case "ready":
      return <Ready course={course} />;
  }
}

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

/** It is written down; the gateway reads it when it starts. */
export function Saved({ course }: { course: Course }) {
  return (
    <div class="setup-end">
      <Icon name="check" size={32} />
      <h2>Saved</h2>
      <p>{course.model.value} answers after a restart. It takes a moment, and this page stays.</p>
      <RestartButton label="Restart now" look="main" onBack={() => course.back("ready")} />
    </div>
  );
}

export function Ready({ course }: { course: Course }) {
  return (
    <div class="setup-end">
      <Icon name="chat" size={32} />
      <h2>Ready</h2>
      <p>{course.model.value} is there.</p>
      <a class="button main" href={to.new()}>
        Say hello
      </a>
    </div>
  );
}
