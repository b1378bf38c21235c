/** Keys: what programs show to be let in, and links that sign browsers in. */

import "./keys.css";
import { useState } from "preact/hooks";
import { operator } from "../../me.ts";
import { Button } from "../../ui/button.tsx";
import type { KeyView, NewKey } from "../../wire.ts";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { KeyForm } from "./form.tsx";
import { SignInLink } from "./link.tsx";
import { KeyList } from "./list.tsx";
import { NoKeys, Openness } from "./openness.tsx";
import { ShownOnce } from "./shown.tsx";

const REFRESHED_MS = 10_000;

export function KeysPage(_: { id: string | null }) {
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<NewKey | null>(null);
  const list = useList<KeyView>("/api/keys", REFRESHED_MS);
  const keys = list.listed.value.items;
  const onMade = (key: NewKey) => {
    setAsking(false);
    setMade(key);
    list.refresh();
  };
  return (
    <>
      <PageHead title="Keys" lead="Programs show a key; browsers are signed in with a link.">
        {operator.value && <SignInLink />}
        {operator.value && (
          <Button look="main" icon="plus" disabled={!keys} onClick={() => setAsking(true)}>
            New key
          </Button>
        )}
      </PageHead>
      {keys && <Openness keys={keys} />}
      <Listing list={list} empty={<NoKeys />}>
        {(keys) => <KeyList keys={keys} onChanged={list.refresh} />}
      </Listing>
      {asking && keys && <KeyForm keys={keys} onMade={onMade} onClose={() => setAsking(false)} />}
      {made && <ShownOnce made={made} onClose={() => setMade(null)} />}
    </>
  );
}
