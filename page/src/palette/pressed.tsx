import { written } from "../ui/keys.ts";

/** Keys as they are drawn. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span class="keys">
      {written(keys).map((each) => (
        <kbd key={each}>{each}</kbd>
      ))}
    </span>
  );
}
