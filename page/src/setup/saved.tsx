import { RestartButton } from "../control/restart/restart.tsx";
import { to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import type { Course } from "./course.ts";

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
