/** All that is remembered as one Markdown document, to be edited like any other. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, put } from "../../api.ts";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { tell } from "../../ui/toast.tsx";
import type { Document, Edited } from "../../wire.ts";
import { Skeleton } from "../parts/skeleton.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { Conflict } from "./conflict.tsx";

const PATH = "/api/memory/document";

export function DocumentEditor() {
  const base = useSignal<string | null>(null);
  const written = useSignal("");
  /** What it has become since it was read, where that is something else. */
  const theirs = useSignal<string | null>(null);
  const problem = useSignal<unknown>(null);
  const busy = useSignal(false);
  const changed = base.value !== null && written.value !== base.value;
  const begin = (markdown: string) => {
    base.value = written.value = markdown;
    theirs.value = null;
  };
  const attempt = async (action: () => Promise<void>) => {
    busy.value = true;
    problem.value = await action().then(
      () => null,
      (error) => error,
    );
    busy.value = false;
  };
  const read = () => attempt(async () => begin((await get<Document>(PATH)).markdown));
  const save = (anyway: boolean) =>
    attempt(async () => {
      const now = (await get<Document>(PATH)).markdown;
      if (!anyway && now !== base.value) {
        theirs.value = now;
        return;
      }
      const edited = await put<Edited>(PATH, { base: base.value, markdown: written.value });
      begin(edited.markdown);
      tell(summary(edited));
    });
  useEffect(() => {
    read();
  }, []);
  useWarning(changed);
  if (base.value === null)
    return problem.value ? <Trouble error={problem.value} onRetry={read} /> : <Skeleton lines={8} />;
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
      {problem.value !== null && <Trouble error={problem.value} />}
      {theirs.value !== null && (
        <Conflict
          base={base.value}
          theirs={theirs.value}
          mine={written.value}
          onSave={() => save(true)}
          onDiscard={() => begin(theirs.value!)}
        />
      )}
      <div class="memory-row">
        <Button look="main" disabled={!changed || busy.value} onClick={() => save(false)}>
          Save
        </Button>
        <Button disabled={!changed || busy.value} onClick={() => begin(base.value!)}>
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
  const said = counts
    .filter(([amount]) => amount)
    .map(([amount, what]) => `${plural(amount, "memory", "memories")} ${what}`);
  return said.length ? `${said.join(", ")}.` : "Nothing was changed.";
}

/** Ask before the page is left with changes that are not saved. */
function useWarning(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [changed]);
}
