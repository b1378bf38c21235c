/** Requests of people who are not let in yet, and the decisions about them. */

import "./people.css";
import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Time } from "../../ui/parts.tsx";
import { showToast } from "../../ui/toast.tsx";
import type { PairingView, SettledPairing } from "../../wire.ts";
import { Confirm } from "../parts.tsx";
import { type Decision, decisionText, nameOf, ROLES } from "./roles.ts";

interface RequestListProps {
  requests: readonly PairingView[];
  /** The decision that is suggested. */
  suggested?: Decision;
  /** Called once a request is decided. */
  onDecided: () => unknown;
}

/** The open requests, with a button for each decision. */
export function RequestList({ requests, suggested, onDecided }: RequestListProps) {
  const [asked, setAsked] = useState<{ request: PairingView; decision: Decision } | null>(null);
  return (
    <>
      <ul class="cards">
        {requests.map((request) => (
          <li key={request.id}>
            <RequestCard
              request={request}
              suggested={suggested}
              onDecide={(decision) => setAsked({ request, decision })}
            />
          </li>
        ))}
      </ul>
      {asked && <DecisionDialog {...asked} onDecided={onDecided} onClose={() => setAsked(null)} />}
    </>
  );
}

interface RequestCardProps {
  request: PairingView;
  suggested: Decision | undefined;
  onDecide: (decision: Decision) => void;
}

function RequestCard({ request, suggested, onDecide }: RequestCardProps) {
  return (
    <article class="panel card" aria-label={`Request of ${nameOf(request)}`}>
      <header class="request-head">
        <h3 dir="auto">{nameOf(request)}</h3>
        <p>
          on <strong>{request.account}</strong>, id <code>{request.user_id}</code>
        </p>
      </header>
      {request.message ? (
        <blockquote class="request-message" dir="auto">
          {request.message}
        </blockquote>
      ) : (
        <p class="faint">They sent no text.</p>
      )}
      <p class="request-times">
        Asked <Time at={request.asked_at} as="relative" />. You can decide until <Time at={request.expires_at} />.
      </p>
      <div class="request-actions">
        {ROLES.map((role) => (
          <Button key={role} look={role === suggested ? "main" : "quiet"} onClick={() => onDecide(role)}>
            {decisionText(role, request).label}
          </Button>
        ))}
        <Button look="bad" onClick={() => onDecide("deny")}>
          {decisionText("deny", request).label}
        </Button>
      </div>
    </article>
  );
}

interface DecisionDialogProps {
  request: PairingView;
  decision: Decision;
  onDecided: () => unknown;
  onClose: () => void;
}

function DecisionDialog({ request, decision, onDecided, onClose }: DecisionDialogProps) {
  const text = decisionText(decision, request);
  const decide = async () => {
    await postDecision(request, decision);
    showToast(text.done);
    await onDecided();
  };
  return (
    <Confirm
      title={text.title}
      action={text.action}
      look={decision === "deny" ? "bad" : "main"}
      onConfirm={decide}
      onClose={onClose}
    >
      <p>{text.meaning}</p>
      {decision !== "deny" && (
        <p>
          Anyone can take any name. Only the id <code>{request.user_id}</code> is certain.
        </p>
      )}
    </Confirm>
  );
}

function postDecision({ id }: PairingView, decision: Decision): Promise<SettledPairing> {
  const path = `/api/pairings/${encodeURIComponent(id)}`;
  return decision === "deny" ? post(`${path}/deny`) : post(`${path}/approve`, { role: decision });
}
