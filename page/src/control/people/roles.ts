/** Roles of people in words: what each is called, and what it means to give or take it. */

import type { PairingView, PeopleRole, PersonView } from "../../wire.ts";

export const ROLES: readonly PeopleRole[] = ["operator", "trusted", "guest"];

export const ROLE_NAMES: Record<PeopleRole, string> = { operator: "Me", trusted: "Trusted", guest: "Guest" };

/** What a person with a role may do. */
export const ROLE_MEANINGS: Record<PeopleRole, string> = {
  operator: "Their chats are yours and appear on this page. They may do and approve everything that you may.",
  trusted:
    "They have conversations and memories of their own, and the agent uses the tools of this machine for them. Only you approve what needs approval.",
  guest:
    "They have conversations and memories of their own, and the agent uses nothing of this machine for them: no files, no commands.",
};

/** Return what a person is called; the id alone if they have no name. */
export const nameOf = ({ user_name, user_id }: Pick<PersonView, "user_name" | "user_id">) => user_name || user_id;

/** Named by `allow` in the configuration: nothing was approved, so nothing can be revoked. */
export const isConfigured = (person: PersonView) => person.approved_at === null;

export type Decision = PeopleRole | "deny";

interface DecisionText {
  label: string;
  title: string;
  action: string;
  meaning: string;
  done: string;
}

/** Return how a decision about a request is asked for, and what is said once it is made. */
export function decisionText(decision: Decision, request: PairingView): DecisionText {
  const name = nameOf(request);
  switch (decision) {
    case "operator":
      return {
        label: "This is me",
        title: `Are you ${name}?`,
        action: "Yes, this is me",
        meaning: ROLE_MEANINGS.operator,
        done: "You are let in. What you wrote is answered now.",
      };
    case "trusted":
      return {
        label: "Trusted",
        title: `Trust ${name}?`,
        action: "Let in as trusted",
        meaning: ROLE_MEANINGS.trusted,
        done: `${name} is let in. What they wrote is answered now.`,
      };
    case "guest":
      return {
        label: "Guest",
        title: `Let ${name} in as a guest?`,
        action: "Let in as a guest",
        meaning: ROLE_MEANINGS.guest,
        done: `${name} is let in as a guest. What they wrote is answered now.`,
      };
    case "deny":
      return {
        label: "Deny",
        title: `Deny ${name}?`,
        action: "Deny",
        meaning: "What they wrote is deleted without an answer, and they cannot ask again for a week.",
        done: `${name} is not let in.`,
      };
  }
}
