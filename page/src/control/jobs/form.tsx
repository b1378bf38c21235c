/** Adding, changing, running and removing a job. */

import { useState } from "preact/hooks";
import { errorText, get, post, query, Refused, remove } from "../../api.ts";
import { fullMoment, relative } from "../../format.ts";
import { go, to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/parts.tsx";
import { useAction, useDebounced, useLoaded } from "../../ui/requests.ts";
import { showToast } from "../../ui/toast.tsx";
import type { Forecast as Foreseen, JobView, Plan, Receipt, Removed, TurnView } from "../../wire.ts";
import { Confirm, ErrorNotice, Filter, TextField } from "../parts.tsx";
import { scheduleText } from "./schedule.tsx";

const PRESETS: readonly { label: string; value: string }[] = [
  { label: "Every morning", value: "30 7 * * *" },
  { label: "Weekdays at 9", value: "0 9 * * 1-5" },
  { label: "Every hour", value: "0 * * * *" },
  { label: "Mondays", value: "0 8 * * 1" },
];

/** The form that adds a job or changes one.  The name identifies the job, and cannot be changed. */
export function JobForm({ job, onClose }: { job?: JobView; onClose: () => void }) {
  const [plan, setPlan] = useState<Plan>(() => planOf(job));
  const action = useAction();
  const change = (part: Partial<Plan>) => setPlan({ ...plan, ...part });
  const save = async () => {
    const [name, schedule] = [plan.name.trim(), plan.schedule.trim()];
    await saveJob({ ...plan, name, schedule, deliver: plan.deliver?.trim() || null });
    showToast(`“${name}” is saved.`);
    onClose();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    action.run(save);
  };
  return (
    <Dialog title={job ? `Edit “${job.name}”` : "New job"} onClose={onClose}>
      <form class="job-form" onSubmit={submit}>
        {!job && <Name value={plan.name} onChange={(name) => change({ name })} />}
        <When value={plan.schedule} onChange={(schedule) => change({ schedule })} />
        <Prompt value={plan.prompt} onChange={(prompt) => change({ prompt })} />
        <Deliver value={plan.deliver ?? ""} onChange={(deliver) => change({ deliver })} />
        {action.problem.value !== undefined && (
          <div ref={bringIntoView}>
            <ErrorNotice error={action.problem.value} />
          </div>
        )}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" disabled={action.busy.value}>
            {job ? "Save" : "Add job"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** On a phone the form is longer than the screen. */
const bringIntoView = (element: HTMLElement | null) => element?.scrollIntoView({ block: "nearest" });

function planOf(job: JobView | undefined): Plan {
  if (!job) return { name: "", schedule: PRESETS[0]!.value, prompt: "", deliver: null };
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
      // The name becomes part of a path.
      pattern="[^\/]+"
      title="no slash"
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
      <Filter label="Common schedules" choices={PRESETS} chosen={value} onChoose={onChange} />
      <Forecast schedule={value} />
    </div>
  );
}

function Prompt({ value, onChange }: PartProps) {
  return (
    <Field label="Prompt" hint="What the agent is asked on each run, in a new conversation.">
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
      hint="Empty: only in its own conversation. Or a channel and an address, such as url:https://example.org/hook."
      placeholder="only in its conversation"
      value={value}
      onInput={onChange}
    />
  );
}

/** The next times of a schedule that is being typed, computed by the gateway. */
function Forecast({ schedule }: { schedule: string }) {
  const settled = useDebounced(schedule.trim());
  return settled ? <Times schedule={settled} /> : <p class="forecast faint">The next runs appear here.</p>;
}

function Times({ schedule }: { schedule: string }) {
  const [loaded] = useLoaded<Foreseen>(`/api/schedule${query({ schedule })}`);
  const { value, error } = loaded.value;
  const words = scheduleText(schedule);
  if (error instanceof Refused) return <p class="forecast bad">{errorText(error)}</p>;
  return (
    <div class="forecast">
      {words && <p>It runs {words}.</p>}
      {value && <p class="faint">Next runs{value.zone && `, by the gateway's clock (${value.zone})`}:</p>}
      <ol class="forecast-times">
        {value?.instants.map((instant) => (
          <li key={instant}>
            {fullMoment(instant)} <span class="faint">{relative(instant)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

interface RemoveJobProps {
  job: JobView;
  onClose: () => void;
  onRemoved?: () => void;
}

/** Asks before a job is removed. */
export function RemoveJob({ job, onClose, onRemoved }: RemoveJobProps) {
  const confirm = async () => {
    await removeJob(job.name);
    onRemoved?.();
  };
  return (
    <Confirm title={`Remove “${job.name}”?`} action="Remove" onConfirm={confirm} onClose={onClose}>
      <p>It will not run again, and its history is deleted. The conversations of its runs stay.</p>
      <p>To stop it for a while, pause it instead.</p>
    </Confirm>
  );
}

const jobPath = (name: string, verb = "") => `/api/jobs/${encodeURIComponent(name)}${verb && `/${verb}`}`;

export const pathOf = (name: string) => jobPath(name);
const saveJob = (plan: Plan) => post<JobView>("/api/jobs", plan);
const removeJob = (name: string) => remove<Removed>(jobPath(name));

/** Run a job now, with a link to its conversation. */
export async function runJob(name: string): Promise<void> {
  const receipt = await post<Receipt>(jobPath(name, "run"));
  const open = () => go(to.session(receipt.session_id, receipt.turn_id));
  showToast(`“${name}” is running.`, { action: { label: "Open", run: open } });
}

/** Pause a job, or resume it. */
export async function togglePause(job: JobView): Promise<void> {
  await post<JobView>(jobPath(job.name, job.paused ? "resume" : "pause"));
  showToast(job.paused ? `“${job.name}” is resumed.` : `“${job.name}” is paused.`);
}

/** Go to the conversation of a turn, given only its id. */
export async function openTurn(turnId: string): Promise<void> {
  const turn = await get<TurnView>(`/api/turns/${encodeURIComponent(turnId)}`);
  go(to.session(turn.session_id, turn.id));
}
