/** All that is remembered as one Markdown document, to be edited like any other. */

import { useEffect } from "preact/hooks";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { tell } from "../../ui/toast.tsx";
import type { Edited } from "../../wire.ts";
import { useWarning } from "../parts/leaving.ts";
import { Pending } from "../parts/pending.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { Conflict } from "./conflict.tsx";
import { base, begin, busy, isChanged, load, problem, save, theirs, written } from "./draft.ts";

export function DocumentEditor() {
  useEffect(() => {
    load();
  }, []);
  useWarning(isChanged.value);
  if (base.value !== null) return <Editor base={base.value} />;
  return <Pending error={problem.value} onRetry={load} lines={8} />;
}

function Editor({ base }: { base: string }) {
  const idle = !isChanged.value || busy.value;
  const keep = async (anyway: boolean) => {
    const edited = await save(anyway);
    if (edited) tell(summary(edited));
  };
  return (
    <section class="memory-stack" aria-label="Document">
      <p class="faint">
        Change, add or delete lines. The comment behind a line says which memory it is: keep the two together. What is
        learned while you write stays.
      </p>
      <textarea
        class="memory-document input"
        aria-label="What is remembered, as Markdown"
        spellcheck={false}
        value={written.value}
        onInput={(event) => {
          written.value = event.currentTarget.value;
        }}
      />
      {problem.value !== undefined && <Trouble error={problem.value} />}
      {theirs.value !== null && (
        <Conflict
          base={base}
          theirs={theirs.value}
          mine={written.value}
          onSave={() => keep(true)}
          onDiscard={() => begin(theirs.value!)}
        />
      )}
      <div class="memory-row">
        <Button look="main" disabled={idle} onClick={() => keep(false)}>
          Save
        </Button>
        <Button disabled={idle} onClick={() => begin(base)}>
          Discard changes
        </Button>
      </div>
    </section>
  );
}

function summary({ added, changed, removed, known, left_out }: Edited): string {
  const counts = [
    [added, "added"],
    [changed, "changed"],
    [removed, "forgotten"],
    [known, "known already"],
    [left_out, "left out, as there is no room for more"],
  ] as const;
  const said = counts.filter(([amount]) => amount);
  if (!said.length) return "Nothing was changed.";
  return `${said.map(([amount, what]) => `${plural(amount, "memory", "memories")} ${what}`).join(", ")}.`;
}
