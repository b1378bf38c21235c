import { Skeleton } from "./skeleton.tsx";
import { Trouble } from "./trouble.tsx";

interface PendingProps {
  /** Why it does not come; undefined while it may. */
  error: unknown;
  onRetry: () => void;
  lines?: number;
}

/** What is not there yet: the place of it, or why it does not come. */
export function Pending({ error, onRetry, lines = 4 }: PendingProps) {
  return error === undefined ? <Skeleton lines={lines} /> : <Trouble error={error} onRetry={onRetry} />;
}
