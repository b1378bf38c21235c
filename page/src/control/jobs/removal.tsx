import type { JobView } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { removeJob } from "./actions.ts";

interface RemoveJobProps {
  job: JobView;
  onClose: () => void;
  onRemoved?: () => void;
}

/** Ask before a job is removed. */
export function RemoveJob({ job, onClose, onRemoved }: RemoveJobProps) {
  const confirm = async () => {
    await removeJob(job.name);
    onRemoved?.();
  };
  return (
    <Confirm title={`Remove “${job.name}”?`} action="Remove" onConfirm={confirm} onClose={onClose}>
      <p>It will not run again, and the list of its times goes with it. The conversations of those times stay.</p>
      <p>To have it rest for a while, pause it instead.</p>
    </Confirm>
  );
}
