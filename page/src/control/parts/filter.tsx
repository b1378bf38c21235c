export interface Choice<V extends string> {
  value: V;
  label: string;
}

interface FilterProps<V extends string> {
  label: string;
  choices: readonly Choice<V>[];
  chosen: V;
  onChoose: (value: V) => void;
}

/** A row of choices, of which one holds. */
export function Filter<V extends string>({ label, choices, chosen, onChoose }: FilterProps<V>) {
  return (
    <fieldset class="filter">
      <legend class="unseen">{label}</legend>
      {choices.map(({ value, label }) => (
        <button
          key={value}
          type="button"
          class="filter-choice"
          aria-pressed={value === chosen}
          onClick={() => onChoose(value)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}
