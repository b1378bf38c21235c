import { useEffect, useState } from "preact/hooks";
import { query, Refused, told } from "../../api.ts";
import { fullMoment, relative } from "../../format.ts";
import { useLoaded } from "../../ui/load.ts";
import type { Forecast as Foreseen } from "../../wire.ts";
import { reading } from "./schedule.ts";

/** Whoever types is not asked about every letter. */
const PAUSE_MS = 300;

/** When a schedule that is being typed would be due, as the gateway says. */
export function Forecast({ schedule }: { schedule: string }) {
  const asked = useSettled(schedule.trim());
  const [loaded] = useLoaded<Foreseen>(asked ? `/api/schedule${query({ schedule: asked })}` : null);
  const { value, error } = loaded.value;
  const words = reading(asked);
  if (!asked) return <p class="forecast faint">The next times appear here.</p>;
  if (error instanceof Refused) return <p class="forecast bad">{told(error)}</p>;
  return (
    <div class="forecast">
      {words && <p>It runs {words}.</p>}
      {value && <p class="faint">The next times{value.zone && `, by the gateway's clock (${value.zone})`}:</p>}
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

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
