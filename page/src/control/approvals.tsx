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
        lead="Questions that conversations wait with. Nothing is lost while they wait, through any restart; what nobody approves in time is denied."
      />
      <Section title="Waiting for you">
        <Listing list={list} empty={<NoQuestions />}>
          {(items) => (
            <ul class="asked-list">
              {items.map((asked) => (
                <li key={`${asked.turn_id}/${asked.question_id}`} class="asked">
                  <h3 class="asked-where">
                    Asked <Time at={asked.asked_at} as="relative" /> in{" "}
                    <SessionLink sessionId={asked.session_id} turnId={asked.turn_id} />
                  </h3>
                  <Question question={questionOf(asked)} turnId={asked.turn_id} isOver={false} />
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
      <Empty icon="shield" title="Nothing waits for you">
        When the agent wants to run a command that no sandbox confines, reach a new host, send something to somebody, or
        know something, it asks here and in its conversation.
      </Empty>
    </div>
  );
}

function questionOf(asked: ApprovalView): QuestionItem {
  return {
    key: asked.id,
    at: asked.asked_at,
    recovered: false,
    role: "question",
    questionId: asked.question_id,
    about: asked.about,
    text: asked.text,
    choices: asked.choices,
    detail: asked.detail,
    expiresAt: asked.expires_at,
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
    { title: "What", wide: true, cell: (grant) => <p class="grant-text">{compactText(grant.text)}</p> },
    {
      title: "Where",
      cell: (grant) => (grant.session_id ? <SessionLink sessionId={grant.session_id} /> : "everywhere"),
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

/** Return the question of a permission without its empty lines. */
const compactText = (text: string) => legibleText(text.replace(/\n\s*\n\s*/g, "\n"));

interface TakeBackProps {
  grant: GrantView;
  onClose: () => void;
  onDone: () => Promise<void>;
}

function TakeBack({ grant, onClose, onDone }: TakeBackProps) {
  const take = async () => {
    await remove<GrantView>(`/api/grants/${encodeURIComponent(grant.id)}`);
    showToast("It is asked about again.");
    await onDone();
  };
  return (
    <Confirm title="Take this back?" action="Take it back" onConfirm={take} onClose={onClose}>
      <p class="grant-text">{compactText(grant.text)}</p>
      <p>From now on you are asked again, in every conversation in which exactly this was allowed.</p>
    </Confirm>
  );
}
