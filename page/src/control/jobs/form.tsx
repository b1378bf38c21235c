import { useState } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/parts.tsx";
import { tell } from "../../ui/toast.tsx";
import type { JobView, Plan } from "../../wire.ts";
import { Trouble } from "../parts/trouble.tsx";
import { saveJob } from "./actions.ts";
import { Forecast } from "./forecast.tsx";

const USUAL: readonly { label: string; schedule: string }[] = [
  { label: "Every morning", schedule: "30 7 * * *" },
  { label: "Weekdays at 9", schedule: "0 9 * * 1-5" },
  { label: "Every hour", schedule: "0 * * * *" },
  { label: "Mondays", schedule: "0 8 * * 1" },
];

/** Add a job, or change one; its name is what it is known by, and stays. */
export function JobForm({ job, onClose }: { job?: JobView; onClose: () => void }) {
  const [plan, setPlan] = useState<Plan>(() => planOf(job));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const change = (part: Partial<Plan>) => setPlan({ ...plan, ...part });
  const save = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await saveJob({
        ...plan,
        name: plan.name.trim(),
        schedule: plan.schedule.trim(),
        deliver: plan.deliver?.trim() || null,
      });
      tell(`“${plan.name.trim()}” is saved.`);
      onClose();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={job ? `Edit “${job.name}”` : "New job"} onClose={onClose}>
      <form class="job-form" onSubmit={save}>
        {!job && <Name value={plan.name} onChange={(name) => change({ name })} />}
        <When value={plan.schedule} onChange={(schedule) => change({ schedule })} />
        <Prompt value={plan.prompt} onChange={(prompt) => change({ prompt })} />
        <Deliver value={plan.deliver ?? ""} onChange={(deliver) => change({ deliver })} />
        {problem !== undefined && (
          <div ref={bringIntoView}>
            <Trouble error={problem} />
          </div>
        )}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" disabled={busy}>
            {job ? "Save" : "Add the job"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** On a phone the form is longer than the screen. */
const bringIntoView = (element: HTMLElement | null) => element?.scrollIntoView({ block: "nearest" });

function planOf(job: JobView | undefined): Plan {
  if (!job) return { name: "", schedule: USUAL[0]!.schedule, prompt: "", deliver: null };
  return { name: job.name, schedule: job.schedule, prompt: job.prompt, deliver: job.deliver };
}

interface PartProps {
  value: string;
  onChange: (value: string) => void;
}

function Name({ value, onChange }: PartProps) {
  return (
    <Field label="Name">
      {(control) => (
        <input
          {...control}
          required
          maxLength={100}
          // It is a part of addresses.
          pattern="[^\/]+"
          title="without a slash"
          placeholder="morning-report"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function When({ value, onChange }: PartProps) {
  return (
    <div class="job-when">
      <Field label="When" hint="Minute, hour, day, month and weekday; or once: at 2031-05-04T09:30">
        {(control) => (
          <input
            {...control}
            required
            maxLength={200}
            spellcheck={false}
            autocomplete="off"
            class="job-schedule"
            value={value}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="filter">
        {USUAL.map(({ label, schedule }) => (
          <button
            key={schedule}
            type="button"
            class="filter-choice"
            aria-pressed={schedule === value}
            onClick={() => onChange(schedule)}
          >
            {label}
          </button>
        ))}
      </div>
      <Forecast schedule={value} />
    </div>
  );
}

function Prompt({ value, onChange }: PartProps) {
  return (
    <Field label="Prompt" hint="What the agent is asked each time, in a new conversation.">
      {(control) => (
        <textarea
          {...control}
          required
          maxLength={20_000}
          rows={4}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Deliver({ value, onChange }: PartProps) {
  return (
    <Field
      label="Deliver the answer to"
      hint="Left empty, it is kept in its own conversation. Elsewhere: a channel and an address, such as url:https://example.org/hook."
    >
      {(control) => (
        <input
          {...control}
          placeholder="nowhere else"
          spellcheck={false}
          autocomplete="off"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
