import { useState } from "preact/hooks";
import { remove } from "../../api.ts";
import { legible } from "../../conversation/legible.ts";
import { Button } from "../../ui/button.tsx";
import { Time } from "../../ui/parts.tsx";
import { tell } from "../../ui/toast.tsx";
import type { GrantView } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Origin } from "../parts/origin.tsx";
import { Section } from "../parts/section.tsx";
import { type Column, Table } from "../parts/table.tsx";

/** What may be done without asking, until it is taken back. */
export function Grants() {
  const list = useList<GrantView>("/api/grants");
  const [taken, setTaken] = useState<GrantView | null>(null);
  return (
    <Section title="Allowed without asking">
      <Listing list={list} empty={<NoGrants />}>
        {(items) => (
          <Table
            label="What is allowed"
            columns={columns(setTaken)}
            rows={items}
            keyOf={(each) => `${each.id}/${each.session_id ?? ""}`}
          />
        )}
      </Listing>
      {taken && <TakeBack grant={taken} onClose={() => setTaken(null)} onDone={list.refresh} />}
    </Section>
  );
}

function NoGrants() {
  return (
    <p class="panel faint">
      Nothing. What you answer with “For this session” or “Always” is listed here, and can be taken back.
    </p>
  );
}

function columns(onTake: (grant: GrantView) => void): readonly Column<GrantView>[] {
  return [
    { title: "What", wide: true, cell: (grant) => <p class="grant-text">{compact(grant.text)}</p> },
    {
      title: "Where",
      cell: (grant) => (grant.session_id ? <Origin sessionId={grant.session_id} /> : "everywhere"),
    },
    { title: "Since", cell: (grant) => <Time at={grant.granted_at} /> },
    {
      title: "",
      cell: (grant) => (
        <Button small look="bad" onClick={() => onTake(grant)}>
          Take back
        </Button>
      ),
    },
  ];
}

/** What was asked when it was allowed, without the empty lines that a chat needs. */
const compact = (text: string) => legible(text.replace(/\n\s*\n\s*/g, "\n"));

interface TakeBackProps {
  grant: GrantView;
  onClose: () => void;
  onDone: () => Promise<void>;
}

function TakeBack({ grant, onClose, onDone }: TakeBackProps) {
  const take = async () => {
    await remove<GrantView>(`/api/grants/${encodeURIComponent(grant.id)}`);
    tell("It is asked about again.");
    await onDone();
  };
  return (
    <Confirm title="Take this back?" action="Take it back" onConfirm={take} onClose={onClose}>
      <p class="grant-text">{compact(grant.text)}</p>
      <p>From now on you are asked again, in every conversation in which exactly this was allowed.</p>
    </Confirm>
  );
}
