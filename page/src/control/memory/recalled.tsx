import { query } from "../../api.ts";
import { useLoaded } from "../../ui/load.ts";
import { Problem } from "../../ui/parts.tsx";
import type { Recalled as RecalledView } from "../../wire.ts";

/** What a provider elsewhere recalls, where there is one: it may know more than is kept here. */
export function Recalled({ wanted }: { wanted: string }) {
  const [loaded] = useLoaded<RecalledView>(`/api/memory/recall${query({ q: wanted })}`);
  const recalled = loaded.value.value;
  if (!recalled?.provider) return null;
  return (
    <section class="memory-recalled" aria-label={`Recalled by ${recalled.provider}`}>
      <h2>Recalled by {recalled.provider}</h2>
      {recalled.problem && <Problem error={recalled.problem} />}
      {!recalled.problem && !recalled.items?.length && <p class="faint">Nothing.</p>}
      <ul class="memories-list">
        {recalled.items?.map((each) => (
          <li key={each.id ?? each.text} class="memory-text">
            {each.text}
          </li>
        ))}
      </ul>
    </section>
  );
}
