import { to } from "../../router.ts";
import { Time } from "../../ui/parts.tsx";
import type { MemoryView } from "../../wire.ts";

/** Where something that is remembered was said. */
export function Origin({ memory }: { memory: MemoryView }) {
  const { origin, turn_id } = memory;
  if (origin) {
    return (
      <span class="said-in">
        <a href={to.session(origin.session_id, turn_id ?? null)}>{origin.title || origin.key}</a>, message{" "}
        {origin.ordinal}, <Time at={origin.at} />
      </span>
    );
  }
  return (
    <span class="said-in">
      {turn_id ? "Said in a conversation that was deleted" : "Added by hand"}, <Time at={memory.updated_at} />
    </span>
  );
}
