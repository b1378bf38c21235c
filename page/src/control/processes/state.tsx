import { Badge } from "../../ui/parts.tsx";
import type { ProcessView } from "../../wire.ts";
import { standing } from "./states.ts";

export function ProcessBadge({ process }: { process: ProcessView }) {
  const { word, tone } = standing(process);
  return <Badge tone={tone}>{word}</Badge>;
}
