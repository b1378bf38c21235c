import { gatewayTime } from "../../clock.ts";
import { Badge, Time } from "../../ui/parts.tsx";
import type { JobView } from "../../wire.ts";
import { reading } from "./schedule.ts";

/** A schedule, in words where there are any. */
export function Schedule({ schedule }: { schedule: string }) {
  const words = reading(schedule);
  return (
    <span class="schedule">
      {words && <span>{words[0]!.toUpperCase() + words.slice(1)}</span>}
      <code>{schedule}</code>
    </span>
  );
}

/** When a job is due next. */
export function NextRun({ job }: { job: JobView }) {
  if (job.paused) return <Badge tone="busy">Paused</Badge>;
  if (job.next_at === null) return <span class="faint">never again</span>;
  // The hour counts that has not come yet; a job that is due this moment is picked up within seconds.
  return job.next_at <= gatewayTime() ? <Badge tone="busy">Due now</Badge> : <Time at={job.next_at} as="relative" />;
}
