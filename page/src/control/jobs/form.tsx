import { useState } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDoing } from "../../ui/doing.ts";
import { Field } from "../../ui/parts.tsx";
import { TextField } from "../../ui/text_field.tsx";
import { tell } from "../../ui/toast.tsx";
import type { JobView, Plan } from "../../wire.ts";
import { Filter } from "../parts/filter.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { saveJob } from "./actions.ts";
import { Forecast } from "./forecast.tsx";

const USUAL: readonly { label: string; value: string }[] = [
  { label: "Every morning", value: "30 7 * * *" },
  { label: "Weekdays at 9", value: "0 9 * * 1-5" },
  { label: "Every hour", value: "0 * * * *" },
  { label: "Mondays", value: "0 8 * * 1" },
];

/** Add a job, or change one; its name is what it is known by, and stays. */
export function JobForm({ job, onClose }: { job?: JobView; onClose: () => void }) {
  const [plan, setPlan] = useState<Plan>(() => planOf(job));
  const doing = useDoing();
  const change = (part: Partial<Plan>) => setPlan({ ...plan, ...part });
  const save = async () => {
    const [name, schedule] = [plan.name.trim(), plan.schedule.trim()];
    await saveJob({ ...plan, name, schedule, deliver: plan.deliver?.trim() || null });
    tell(`“${name}” is saved.`);
    onClose();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    doing.run(save);
  };
  return (
    <Dialog title={job ? `Edit “${job.name}”` : "New job"} onClose={onClose}>
      <form class="job-form" onSubmit={submit}>
        {!job && <Name value={plan.name} onChange={(name) => change({ name })} />}
        <When value={plan.schedule} onChange={(schedule) => change({ schedule })} />
        <Prompt value={plan.prompt} onChange={(prompt) => change({ prompt })} />
        <Deliver value={plan.deliver ?? ""} onChange={(deliver) => change({ deliver })} />
        {doing.problem.value !== undefined && (
          <div ref={bringIntoView}>
            <Trouble error={doing.problem.value} />
          </div>
        )}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" disabled={doing.busy.value}>
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
  if (!job) return { name: "", schedule: USUAL[0]!.value, prompt: "", deliver: null };
  return { name: job.name, schedule: job.schedule, prompt: job.prompt, deliver: job.deliver };
}

interface PartProps {
  value: string;
  onChange: (value: string) => void;
}

function Name({ value, onChange }: PartProps) {
  return (
    <TextField
      label="Name"
      required
      maxLength={100}
      // It is a part of addresses.
      pattern="[^\/]+"
      title="without a slash"
      placeholder="morning-report"
      value={value}
      onInput={onChange}
    />
  );
}

function When({ value, onChange }: PartProps) {
  return (
    <div class="job-when">
      <TextField
        label="When"
        hint="Minute, hour, day, month and weekday; or once: at 2031-05-04T09:30"
        required
        maxLength={200}
        value={value}
        onInput={onChange}
      />
      <Filter label="Usual schedules" choices={USUAL} chosen={value} onChoose={onChange} />
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
    <TextField
      label="Deliver the answer to"
      hint="Left empty, it is kept in its own conversation. Elsewhere: a channel and an address, such as url:https://example.org/hook."
      placeholder="nowhere else"
      value={value}
      onInput={onChange}
    />
  );
}
