import { useState } from "preact/hooks";
import { remove } from "../../api.ts";
import { count } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { Badge, Time } from "../../ui/parts.tsx";
import { tell } from "../../ui/toast.tsx";
import type { KeyView, RevokedKey } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { useClosed } from "./closed.ts";
import { isLast, isLive, OPERATOR } from "./opening.ts";

const COLUMNS: readonly Column<KeyView>[] = [
  { title: "Name", wide: true, cell: (key) => <strong>{key.name || "without a name"}</strong> },
  { title: "Begins with", cell: (key) => <code>{key.prefix}</code> },
  { title: "May", cell: (key) => <Scopes scopes={key.scopes} /> },
  { title: "Owner", cell: (key) => (key.owner === OPERATOR ? "you" : key.owner) },
  { title: "Per minute", cell: (key) => (key.rate_limit ? count(key.rate_limit) : "any number") },
  { title: "Made", cell: (key) => <Time at={key.created_at} /> },
];

/** The keys that open something, and, folded away, those that do not any more. */
export function KeyList({ keys, onChanged }: { keys: readonly KeyView[]; onChanged: () => unknown }) {
  const [revoking, setRevoking] = useState<KeyView | null>(null);
  const live = keys.filter(isLive);
  const over = keys.filter((each) => !isLive(each));
  const columns = [
    ...COLUMNS,
    { title: "", cell: (key: KeyView) => <Revoke name={key.name} onClick={() => setRevoking(key)} /> },
  ];
  return (
    <>
      {live.length > 0 && <Table label="Keys" columns={columns} rows={live} keyOf={(key) => key.id} />}
      {over.length > 0 && (
        <details class="keys-revoked">
          <summary>Revoked ({over.length})</summary>
          <Table label="Revoked keys" columns={[...COLUMNS, REVOKED]} rows={over} keyOf={(key) => key.id} />
        </details>
      )}
      {revoking && <Revoking revoked={revoking} keys={keys} onChanged={onChanged} onClose={() => setRevoking(null)} />}
    </>
  );
}

const REVOKED: Column<KeyView> = {
  title: "Revoked",
  cell: (key) => key.revoked_at !== null && <Time at={key.revoked_at} />,
};

function Scopes({ scopes }: { scopes: readonly string[] }) {
  return (
    <span class="key-scopes">
      {scopes.map((each) => (
        <Badge key={each} tone={each === "admin" ? "note" : "plain"}>
          {each}
        </Badge>
      ))}
    </span>
  );
}

function Revoke({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <Button small look="bad" aria-label={`Revoke ${name}`} onClick={onClick}>
      Revoke…
    </Button>
  );
}

interface RevokingProps {
  revoked: KeyView;
  keys: readonly KeyView[];
  onChanged: () => unknown;
  onClose: () => void;
}

function Revoking({ revoked, keys, onChanged, onClose }: RevokingProps) {
  const closed = useClosed();
  const revoke = async () => {
    const { last } = await remove<RevokedKey>(`/api/keys/${revoked.id}`);
    tell(last ? "Revoked. Programs on this machine need no key again." : "Revoked.");
    await onChanged();
  };
  return (
    <Confirm title={`Revoke ${revoked.name || revoked.prefix}?`} action="Revoke" onConfirm={revoke} onClose={onClose}>
      <p>Whoever uses it is let in no more, and what it has opened closes now. This cannot be undone.</p>
      {isLast(keys, revoked) && !closed && (
        <p>
          <strong>It is the last key that opens the API.</strong> Without it, programs on the gateway’s machine can talk
          and read again without one.
        </p>
      )}
    </Confirm>
  );
}
