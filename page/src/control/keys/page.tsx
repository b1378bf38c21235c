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
      <PageHead title="Keys" lead="Programs authenticate with a key; browsers sign in with a link.">
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
  { title: "Name", wide: true, cell: (key) => <strong>{key.name || "unnamed"}</strong> },
  { title: "Begins with", cell: (key) => <code>{key.prefix}</code> },
  { title: "Scopes", cell: (key) => <Scopes scopes={key.scopes} /> },
  { title: "Owner", cell: (key) => (key.owner === OPERATOR ? "you" : key.owner) },
  { title: "Per minute", cell: (key) => (key.rate_limit ? count(key.rate_limit) : "no limit") },
  { title: "Created", cell: (key) => <Time at={key.created_at} /> },
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
    showToast(last ? "Revoked. Programs on this machine need no key any more." : "Revoked.");
    await onChanged();
  };
  return (
    <Confirm title={`Revoke ${revoked.name || revoked.prefix}?`} action="Revoke" onConfirm={revoke} onClose={onClose}>
      <p>Programs that use it lose access, and their open connections close now. This cannot be undone.</p>
      {isLast(keys, revoked) && !closed && (
        <p>
          <strong>This is the last key for the API.</strong> Without it, programs on the gateway’s machine can chat and
          read without a key again.
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
        Sign in another browser
      </Button>
      {link && (
        <Dialog title="Sign in another browser" onClose={() => setLink(null)}>
          <p>
            Open this address there. It works once, until <Time at={link.expires_at} />, and gives access to everything
            that you can do.
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
  const needsKey = closed || keys.some(opensApi);
  return (
    <p class="openness" role="note">
      <Icon name={needsKey ? "shield" : "info"} />
      <span>
        {needsKey
          ? "Every request needs a key or a signed-in browser, except the command line on the gateway’s machine."
          : "Programs on the gateway’s machine can chat and read without a key. Once a key with the scope api or admin exists, every program needs one."}
      </span>
    </p>
  );
}

function NoKeys() {
  return (
    <Empty icon="key" title="No keys yet">
      Create one for each program, so that each can be revoked separately. OpenAI clients take it as their API key.
    </Empty>
  );
}

/** A new key, shown once. */
function NewKeyDialog({ made, onClose }: { made: NewKey; onClose: () => void }) {
  return (
    <Dialog title={`Key ${made.made.name}`} onClose={onClose}>
      <p>Copy it now. It is not shown again, because only its digest is stored.</p>
      <Command text={made.key} />
      <p class="faint">
        Programs send it as <code>Authorization: Bearer …</code>, or as their OpenAI API key for{" "}
        <code>{location.origin}/v1</code>.
      </p>
      {made.first && (
        <p class="consequence">
          This is the first key: from now on every program needs one, on this machine too. This browser stays signed in.
        </p>
      )}
      <div class="dialog-actions">
        <Button look="main" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
