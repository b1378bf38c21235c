/** Keys: what programs authenticate with, and links that sign browsers in. */

import "./keys.css";
import { useState } from "preact/hooks";
import { post, remove } from "../../api.ts";
import { count } from "../../format.ts";
import { isOperator } from "../../sign_in/identity.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Badge, Command, Empty, Time } from "../../ui/parts.tsx";
import { attempt, showToast } from "../../ui/toast.tsx";
import type { KeyView, SignInLink as Link, NewKey, RevokedKey } from "../../wire.ts";
import { type Column, Listing, Table, useList } from "../list.tsx";
import { Confirm, PageHead } from "../parts.tsx";
import { isLast, isLive, KeyForm, OPERATOR, opensApi, useConfiguredAccess } from "./form.tsx";

const POLL_MS = 10_000;

export function KeysPage(_: { id: string | null }) {
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<NewKey | null>(null);
  const list = useList<KeyView>("/api/keys", POLL_MS);
  const keys = list.listed.value.items;
  const onMade = (key: NewKey) => {
    setAsking(false);
    setMade(key);
    list.refresh();
  };
  return (
    <>
      <PageHead title="Keys" lead="Programs show a key; browsers are signed in with a link.">
        {isOperator.value && <SignInLinkButton />}
        {isOperator.value && (
          <Button look="main" icon="plus" disabled={!keys} onClick={() => setAsking(true)}>
            New key
          </Button>
        )}
      </PageHead>
      {keys && <AccessNote keys={keys} />}
      <Listing list={list} empty={<NoKeys />}>
        {(keys) => <KeyList keys={keys} onChanged={list.refresh} />}
      </Listing>
      {asking && keys && <KeyForm keys={keys} onMade={onMade} onClose={() => setAsking(false)} />}
      {made && <NewKeyDialog made={made} onClose={() => setMade(null)} />}
    </>
  );
}

const COLUMNS: readonly Column<KeyView>[] = [
  { title: "Name", wide: true, cell: (key) => <strong>{key.name || "without a name"}</strong> },
  { title: "Begins with", cell: (key) => <code>{key.prefix}</code> },
  { title: "May", cell: (key) => <Scopes scopes={key.scopes} /> },
  { title: "Owner", cell: (key) => (key.owner === OPERATOR ? "you" : key.owner) },
  { title: "Per minute", cell: (key) => (key.rate_limit ? count(key.rate_limit) : "any number") },
  { title: "Made", cell: (key) => <Time at={key.created_at} /> },
];

/** The active keys, and the revoked ones in a folded list. */
function KeyList({ keys, onChanged }: { keys: readonly KeyView[]; onChanged: () => unknown }) {
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
  const closed = useConfiguredAccess();
  const revoke = async () => {
    const { last } = await remove<RevokedKey>(`/api/keys/${revoked.id}`);
    showToast(last ? "Revoked. Programs on this machine need no key again." : "Revoked.");
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

/** Creates a link that signs another browser in. */
function SignInLinkButton() {
  const [link, setLink] = useState<Link | null>(null);
  const make = async () => setLink((await attempt(() => post<Link>("/api/sign-in/link"))) ?? null);
  return (
    <>
      <Button icon="link" onClick={make}>
        Sign another browser in
      </Button>
      {link && (
        <Dialog title="Sign another browser in" onClose={() => setLink(null)}>
          <p>
            Open this address there. It is good once, until <Time at={link.expires_at} />, and whoever opens it can do
            everything that you can.
          </p>
          <Command text={reachable(link.url)} />
        </Dialog>
      )}
    </>
  );
}

/** The gateway names the address it listens on; the other browser needs the address that this browser uses. */
const reachable = (url: string) => `${location.origin}/${new URL(url).hash}`;

/** Says who can use this gateway now. */
function AccessNote({ keys }: { keys: readonly KeyView[] }) {
  const closed = useConfiguredAccess();
  const asked = closed || keys.some(opensApi);
  return (
    <p class="openness" role="note">
      <Icon name={asked ? "shield" : "info"} />
      <span>
        {asked
          ? "Every request needs a key or a signed-in browser. The command line on the gateway’s machine needs none."
          : "Programs on the gateway’s machine can talk and read without a key. The first key with the scope api or admin ends that: from then on every program needs one."}
      </span>
    </p>
  );
}

function NoKeys() {
  return (
    <Empty icon="key" title="No keys yet">
      Make one for each program, so that each can be revoked by itself. Programs that speak to OpenAI take it as their
      API key.
    </Empty>
  );
}

/** A new key, shown once. */
function NewKeyDialog({ made, onClose }: { made: NewKey; onClose: () => void }) {
  return (
    <Dialog title={`The key ${made.made.name}`} onClose={onClose}>
      <p>Copy it now: only its digest is kept, so nobody can show it again.</p>
      <Command text={made.key} />
      <p class="faint">
        Programs send it as <code>Authorization: Bearer …</code>, or take it as their API key for{" "}
        <code>{location.origin}/v1</code>.
      </p>
      {made.first && (
        <p class="consequence">
          It is the first key: every program needs one from now on, on this machine too. This browser stays signed in.
        </p>
      )}
      <div class="dialog-actions">
        <Button look="main" onClick={onClose}>
          I have it
        </Button>
      </div>
    </Dialog>
  );
}
