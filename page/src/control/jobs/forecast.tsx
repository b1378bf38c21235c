import { query, Refused, told } from "../../api.ts";
import { fullMoment, relative } from "../../format.ts";
import { useLoaded } from "../../ui/load.ts";
import { useSettled } from "../../ui/settled.ts";
import type { Forecast as Foreseen } from "../../wire.ts";
import { reading } from "./schedule.ts";

/** When a schedule that is being typed would be due, as the gateway says. */
export function Forecast({ schedule }: { schedule: string }) {
  const asked = useSettled(schedule.trim());
  return asked ? <Times schedule={asked} /> : <p class="forecast faint">The next times appear here.</p>;
}

function Times({ schedule }: { schedule: string }) {
  const [loaded] = useLoaded<Foreseen>(`/api/schedule${query({ schedule })}`);
  const { value, error } = loaded.value;
  const words = reading(schedule);
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
