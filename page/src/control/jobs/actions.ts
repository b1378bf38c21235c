/** What may be done about a job. */

import { get, post, remove } from "../../api.ts";
import { go, to } from "../../router.ts";
import { tell } from "../../ui/toast.tsx";
import type { JobView, Plan, Receipt, Removed, TurnView } from "../../wire.ts";

const at = (name: string, verb = "") => `/api/jobs/${encodeURIComponent(name)}${verb && `/${verb}`}`;

export const pathOf = (name: string) => at(name);
export const saveJob = (plan: Plan) => post<JobView>("/api/jobs", plan);
export const removeJob = (name: string) => remove<Removed>(at(name));

/** Let a job fall due now, and say where its answer comes. */
export async function runJob(name: string): Promise<void> {
  const receipt = await post<Receipt>(at(name, "run"));
  const open = () => go(to.session(receipt.session_id, receipt.turn_id));
  tell(`“${name}” runs now.`, { action: { label: "Watch it", run: open } });
}

/** Pause a job, or let it go on. */
export async function turnJob(job: JobView): Promise<void> {
  await post<JobView>(at(job.name, job.paused ? "resume" : "pause"));
  tell(job.paused ? `“${job.name}” goes on.` : `“${job.name}” is paused.`);
}

/** Go to the conversation of a turn of which only the id is known. */
export async function openTurn(turnId: string): Promise<void> {
  const turn = await get<TurnView>(`/api/turns/${encodeURIComponent(turnId)}`);
  go(to.session(turn.session_id, turn.id));
}
