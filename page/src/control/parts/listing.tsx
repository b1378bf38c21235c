import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Unanswered } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import type { List } from "./list.ts";
import { Skeleton } from "./skeleton.tsx";
import { Trouble } from "./trouble.tsx";

interface ListingProps<T> {
  list: List<T>;
  /** What is shown when there is nothing. */
  empty: ComponentChildren;
  children: (items: readonly T[]) => ComponentChildren;
}

/** A list in whichever state it is: on its way, gone wrong, empty, or there, with a way to see more of it. */
export function Listing<T>({ list, empty, children }: ListingProps<T>) {
  const { items, more, error } = list.listed.value;
  // The page says already when the gateway is away; what was shown stays where it was.
  const isNews = error !== undefined && !(items && error instanceof Unanswered);
  return (
    <>
      {isNews && <Trouble error={error} onRetry={list.refresh} />}
      {items === undefined && error === undefined && <Skeleton />}
      {items?.length === 0 && empty}
      {items !== undefined && items.length > 0 && children(items)}
      {more && <ShowMore onMore={list.showMore} />}
    </>
  );
}

function ShowMore({ onMore }: { onMore: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const more = async () => {
    setBusy(true);
    await onMore();
    setBusy(false);
  };
  return (
    <div class="show-more">
      <Button disabled={busy} onClick={more}>
        {busy ? "Loading…" : "Show more"}
      </Button>
    </div>
  );
}
