/** Approvals: questions that wait for a person, and permissions that were granted. */

import "../conversation/items/items.css";
import "../conversation/tools/tools.css";
import "./approvals.css";
import { useState } from "preact/hooks";
import { remove } from "../api.ts";
import { legibleText } from "../conversation/exact_text.tsx";
import { Question } from "../conversation/items/question.tsx";
import type { QuestionItem } from "../journal/view.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Time } from "../ui/parts.tsx";
import { showToast } from "../ui/toast.tsx";
import type { ApprovalView, GrantView } from "../wire.ts";
import { type Column, Listing, Table, useList } from "./list.tsx";
import { Confirm, PageHead, Section } from "./parts.tsx";
import { SessionLink } from "./session_link.tsx";

const POLL_MS = 2_000;

export function ApprovalsPage() {
  const list = useList<ApprovalView>("/api/approvals", POLL_MS);
  return (
    <>
      <PageHead
        title="Approvals"
        lead="Questions that conversations are waiting on. They survive restarts, and are denied if they expire."
      />
      <Section title="Waiting for you">
        <Listing list={list} empty={<NoQuestions />}>
          {(items) => (
            <ul class="cards">
              {items.map((approval) => (
                <li key={`${approval.turn_id}/${approval.question_id}`} class="asked">
                  <h3 class="asked-where">
                    Asked <Time at={approval.asked_at} as="relative" /> in{" "}
                    <SessionLink sessionId={approval.session_id} turnId={approval.turn_id} />
                  </h3>
                  <Question question={questionOf(approval)} turnId={approval.turn_id} isOver={false} />
                </li>
              ))}
            </ul>
          )}
        </Listing>
      </Section>
      <Grants />
    </>
  );
}

function NoQuestions() {
  return (
    <div class="panel">
      <Empty icon="shield" title="No open questions">
        When the agent wants to run a command outside the sandbox, reach a new host, send a message or ask you
        something, it asks here and in its conversation.
      </Empty>
    </div>
  );
}

function questionOf(approval: ApprovalView): QuestionItem {
  return {
    key: approval.id,
    at: approval.asked_at,
    recovered: false,
    role: "question",
    questionId: approval.question_id,
    about: approval.about,
    text: approval.text,
    choices: approval.choices,
    detail: approval.detail,
    expiresAt: approval.expires_at,
    callId: null,
    name: null,
    args: null,
    answer: null,
    answeredAt: null,
  };
}

/** Permissions that were granted, until they are revoked. */
function Grants() {
  const list = useList<GrantView>("/api/grants");
  const [revoking, setRevoking] = useState<GrantView | null>(null);
  return (
    <Section title="Allowed without asking">
      <Listing list={list} empty={<NoGrants />}>
        {(items) => (
          <Table
            label="Permissions"
            columns={columns(setRevoking)}
            rows={items}
            keyOf={(each) => `${each.id}/${each.session_id ?? ""}`}
          />
        )}
      </Listing>
      {revoking && <RevokeGrant grant={revoking} onClose={() => setRevoking(null)} onDone={list.refresh} />}
    </Section>
  );
}

function NoGrants() {
  return (
    <p class="panel faint">
      No permissions. What you allow with “For this session” or “Always” is listed here and can be revoked.
    </p>
  );
}

function columns(onRevoke: (grant: GrantView) => void): readonly Column<GrantView>[] {
  return [
    { title: "What", wide: true, cell: (grant) => <p class="grant-text">{compactText(grant.text)}</p> },
    {
      title: "Where",
      cell: (grant) => (grant.session_id ? <SessionLink sessionId={grant.session_id} /> : "everywhere"),
    },
    { title: "Since", cell: (grant) => <Time at={grant.granted_at} /> },
    {
      title: "",
      cell: (grant) => (
        <Button small look="bad" onClick={() => onRevoke(grant)}>
          Revoke
        </Button>
      ),
    },
  ];
}

/** Return the question of a permission without its empty lines. */
const compactText = (text: string) => legibleText(text.replace(/\n\s*\n\s*/g, "\n"));

interface RevokeGrantProps {
  grant: GrantView;
  onClose: () => void;
  onDone: () => Promise<void>;
}

function RevokeGrant({ grant, onClose, onDone }: RevokeGrantProps) {
  const revoke = async () => {
    await remove<GrantView>(`/api/grants/${encodeURIComponent(grant.id)}`);
    showToast("Revoked. You will be asked again.");
    await onDone();
  };
  return (
    <Confirm title="Revoke this permission?" action="Revoke" onConfirm={revoke} onClose={onClose}>
      <p class="grant-text">{compactText(grant.text)}</p>
      <p>You will be asked again in every conversation that had this permission.</p>
    </Confirm>
  );
}
