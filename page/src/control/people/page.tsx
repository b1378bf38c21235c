/** People: who asks to be let in on chat channels, and who is let in as what. */

import "./people.css";
import { useState } from "preact/hooks";
import { patch, remove } from "../../api.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Time } from "../../ui/parts.tsx";
import { showToast } from "../../ui/toast.tsx";
import type { PairingView, PeopleRole, PersonView, RevokedPerson } from "../../wire.ts";
import { refreshStatus } from "../gateway_status.ts";
import { type Column, Listing, Table, useList } from "../list.tsx";
import { Confirm, ErrorNotice, needsOperator, PageHead, Section } from "../parts.tsx";
import { RequestList } from "./requests.tsx";
import { isConfigured, nameOf, ROLE_MEANINGS, ROLE_NAMES, ROLES } from "./roles.ts";

const POLL_MS = 2_000;

export function PeoplePage() {
  const requests = useList<PairingView>("/api/pairings", POLL_MS);
  const people = useList<PersonView>("/api/people");
  const refresh = () => Promise.all([requests.refresh(), people.refresh(), refreshStatus()]);
  const { error } = requests.listed.value;
  return (
    <>
      <PageHead
        title="People"
        lead="Who may write to the agent in chats. Others are not answered until you let them in."
      />
      {needsOperator(error) ? (
        <ErrorNotice error={error} />
      ) : (
        <>
          <Section title="Waiting for you">
            <Listing list={requests} empty={<NoRequests />}>
              {(items) => <RequestList requests={items} onDecided={refresh} />}
            </Listing>
          </Section>
          <Section title="Let in">
            <Listing list={people} empty={<NoPeople />}>
              {(items) => <PersonTable people={items} onChanged={refresh} />}
            </Listing>
          </Section>
        </>
      )}
    </>
  );
}

function NoRequests() {
  return (
    <div class="panel">
      <Empty icon="people" title="No open requests">
        When a person writes to one of your <a href={to.control("channels")}>chat accounts</a> for the first time, their
        request appears here.
      </Empty>
    </div>
  );
}

function NoPeople() {
  return <p class="panel faint">No person is let in yet. Write to your bot, and approve yourself here.</p>;
}

interface PersonTableProps {
  people: readonly PersonView[];
  onChanged: () => unknown;
}

function PersonTable({ people, onChanged }: PersonTableProps) {
  const [changing, setChanging] = useState<{ person: PersonView; role: PeopleRole } | null>(null);
  const [revoking, setRevoking] = useState<PersonView | null>(null);
  const columns: readonly Column<PersonView>[] = [
    { title: "Person", wide: true, cell: (person) => <Name person={person} /> },
    { title: "Account", cell: (person) => person.account },
    {
      title: "Role",
      cell: (person) => <RoleField person={person} onChoose={(role) => setChanging({ person, role })} />,
    },
    { title: "Let in", cell: (person) => <LetIn person={person} /> },
    {
      title: "Last seen",
      cell: ({ last_seen_at }) => (last_seen_at === null ? "never" : <Time at={last_seen_at} as="relative" />),
    },
    {
      title: "",
      cell: (person) => !isConfigured(person) && <RevokeButton person={person} onClick={() => setRevoking(person)} />,
    },
  ];
  return (
    <>
      <Table label="People" columns={columns} rows={people} keyOf={({ person }) => person} />
      {people.some(isConfigured) && <ConfiguredNote />}
      {changing && <RoleChange {...changing} onChanged={onChanged} onClose={() => setChanging(null)} />}
      {revoking && <Revoking person={revoking} onChanged={onChanged} onClose={() => setRevoking(null)} />}
    </>
  );
}

/** Says where people are changed who are not approved here. */
function ConfiguredNote() {
  return (
    <p class="faint">
      People with <code>allow</code> are named by the configuration. Change <code>allow</code> of the account{" "}
      <a href={to.control("settings", "channels")}>in the settings</a>.
    </p>
  );
}

function Name({ person }: { person: PersonView }) {
  return (
    <>
      {person.user_name && <strong dir="auto">{person.user_name}</strong>} <code>{person.user_id}</code>
    </>
  );
}

interface RoleFieldProps {
  person: PersonView;
  onChoose: (role: PeopleRole) => void;
}

/** The role, which can be changed unless the configuration decides it. */
function RoleField({ person, onChoose }: RoleFieldProps) {
  if (isConfigured(person)) return <>{ROLE_NAMES[person.role]}</>;
  return (
    <select
      class="input person-role"
      aria-label={`Role of ${nameOf(person)}`}
      value={person.role}
      onChange={(event) => onChoose(event.currentTarget.value as PeopleRole)}
    >
      {ROLES.map((role) => (
        <option key={role} value={role}>
          {ROLE_NAMES[role]}
        </option>
      ))}
    </select>
  );
}

function LetIn({ person: { approved_at } }: { person: PersonView }) {
  return approved_at === null ? <code>allow</code> : <Time at={approved_at} />;
}

function RevokeButton({ person, onClick }: { person: PersonView; onClick: () => void }) {
  return (
    <Button small look="bad" aria-label={`Revoke ${nameOf(person)}`} onClick={onClick}>
      Revoke…
    </Button>
  );
}

interface ChangeProps {
  person: PersonView;
  onChanged: () => unknown;
  onClose: () => void;
}

const pathOf = ({ person }: PersonView) => `/api/people/${encodeURIComponent(person)}`;

function RoleChange({ person, role, onChanged, onClose }: ChangeProps & { role: PeopleRole }) {
  const name = ROLE_NAMES[role];
  const change = async () => {
    await patch<PersonView>(pathOf(person), { role });
    showToast(`Changed to ${name}, from the next message on.`);
    await onChanged();
  };
  return (
    <Confirm
      title={`Change ${nameOf(person)} to ${name}?`}
      action={`Change to ${name}`}
      look="main"
      onConfirm={change}
      onClose={onClose}
    >
      <p>{ROLE_MEANINGS[role]}</p>
      <p>It applies from their next message on.</p>
    </Confirm>
  );
}

function Revoking({ person, onChanged, onClose }: ChangeProps) {
  const revoke = async () => {
    await remove<RevokedPerson>(pathOf(person));
    showToast("Revoked.");
    await onChanged();
  };
  return (
    <Confirm title={`Revoke ${nameOf(person)}?`} action="Revoke" onConfirm={revoke} onClose={onClose}>
      <p>
        The agent no longer answers {nameOf(person)} on {person.account}. An answer that it is working on is still sent.
        Their conversations and memories are kept.
      </p>
      <p>If they write again, they ask to be let in again.</p>
    </Confirm>
  );
}
