/** The usage meter: tokens and cost of a conversation and of its last answer. */

import "./usage.css";
import { useId, useState } from "preact/hooks";
import { count, percent, price, tokens } from "../format.ts";
import type { Conversation } from "../journal/conversation.ts";
import type { TokenUsage } from "../journal/view.ts";
import { Icon } from "../ui/icon.tsx";

/** The usage of a session; details on hover or click. */
export function UsageMeter({ conversation }: { conversation: Conversation }) {
  const id = useId();
  const [over, setOver] = useState(false);
  const [pinned, setPinned] = useState(false);
  const used = conversation.used.value;
  const summary = usageSummary(used);
  if (!summary) return null;
  const last = conversation.turns.value.findLast((each) => usageSummary(each.used))?.used;
  const open = over || pinned;
  const close = () => {
    setOver(false);
    setPinned(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The pointer only shows what the button inside shows as well.
    <div
      class="meter"
      onPointerEnter={(event) => setOver(event.pointerType === "mouse")}
      onPointerLeave={() => setOver(false)}
      onKeyDown={(event) => event.key === "Escape" && close()}
      onFocusOut={close}
    >
      <button
        type="button"
        class="meter-button"
        aria-label={`Used: ${summary}`}
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setPinned(!pinned)}
      >
        <Icon name="gauge" size={15} />
        <span class="meter-brief">{summary}</span>
      </button>
      <div class="meter-more" id={id} hidden={!open}>
        <Figures title="This conversation" used={used} />
        {last && <Figures title="The last answer" used={last} />}
      </div>
    </div>
  );
}

function Figures({ title, used }: { title: string; used: TokenUsage }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {usageLines(used).map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface UsageLine {
  name: string;
  value: string;
}

/** Return the usage in short; empty if there is none. */
export function usageSummary(used: TokenUsage): string {
  const all = used.input + used.output;
  if (!all && !used.costMicros) return "";
  return [`${tokens(all)} tokens`, used.costMicros ? price(used.costMicros) : ""].filter(Boolean).join(" · ");
}

/** Return the usage by kind, without zeros. */
export function usageLines(used: TokenUsage): readonly UsageLine[] {
  const cached = used.cached ? ` (${percent(cachedShare(used))} cached)` : "";
  return [
    { name: "Model", value: used.model },
    { name: "Input", value: used.input ? `${count(used.input)} tokens${cached}` : "" },
    { name: "Output", value: used.output ? `${count(used.output)} tokens` : "" },
    { name: "Cost", value: used.costMicros ? price(used.costMicros) : "" },
  ].filter((each) => each.value);
}

/** Providers differ in whether cached tokens are part of the input. */
function cachedShare({ input, cached }: TokenUsage): number {
  return cached / Math.max(input, cached);
}
