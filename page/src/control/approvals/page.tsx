/** Everything that waits for a person, and everything that needs none any more. */

import { Question } from "../../conversation/items/question.tsx";
import { Empty, Time } from "../../ui/parts.tsx";
import type { ApprovalView } from "../../wire.ts";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Origin } from "../parts/origin.tsx";
import { Section } from "../parts/section.tsx";
import { Grants } from "./grants.tsx";
import { questionOf } from "./question.ts";
import "../../conversation/items/items.css";
import "../../conversation/tools/tools.css";
import "./approvals.css";

const LOOK_MS = 2_000;

export function ApprovalsPage() {
  const list = useList<ApprovalView>("/api/approvals", LOOK_MS);
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
                    <Origin sessionId={asked.session_id} turnId={asked.turn_id} />
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
