/** The guided way to a model: provider, key, model, and a trial before anything is saved. */

import "./setup.css";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Pending } from "../control/parts/pending.tsx";
import { Access } from "./access.tsx";
import { Course } from "./course.ts";
import { ModelChoice } from "./model.tsx";
import { ProviderChoice } from "./provider.tsx";
import { Ready, Saved } from "./saved.tsx";
import { Steps } from "./steps.tsx";
import { Trial } from "./trial.tsx";

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
