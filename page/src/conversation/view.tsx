/** A conversation: a list of turns that keeps the reader's place. */

import "./list.css";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";
import { markerText } from "../journal/items.ts";
import type { Turn } from "../journal/view.ts";
import { outgoing } from "../outbox/outbox.ts";
import { isOver, openQuestion } from "../turns/status.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Empty, Spinner } from "../ui/parts.tsx";
import { showError, showToast } from "../ui/toast.tsx";
import { ConversationContext } from "./context.ts";
import { answerOf } from "./items/turn_actions.tsx";
import { Scroller } from "./scroller.ts";
import { Turns } from "./turn_list.tsx";

const FLASH_MS = 2_000;

interface ConversationViewProps {
  conversation: Conversation;
  /** The turn to scroll to. */
  target: string | null;
  /** Shown below the last turn. */
  children?: ComponentChildren;
}

/** A conversation. */
export function ConversationView({ conversation, target, children }: ConversationViewProps) {
  const scroller = useMemo(() => new Scroller(), [conversation]);
  const [element, setElement] = useState<HTMLElement | null>(null);
  const content = useRef<HTMLDivElement>(null);
  useLayoutEffect(
    () => (element && content.current ? scroller.attach(element, content.current) : undefined),
    [scroller, element],
  );
  const flashing = useTarget(conversation, scroller, target);
  useOwnMessages(conversation, scroller);
  const turns = conversation.turns.value;
  const isEmpty = turns.length === 0;
  return (
    <ConversationContext.Provider value={conversation}>
      <div class="conversation">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: What is read with the keyboard is scrolled with it. */}
        <section class="scroller" ref={setElement} tabIndex={0} aria-label="Conversation">
          <div class="column" ref={content}>
            {!isEmpty && (
              <OlderTurns conversation={conversation} isWanted={() => scroller.isNearTop} scroller={element} />
            )}
            {isEmpty && <EmptyConversation conversation={conversation} />}
            <Turns
              turns={turns}
              scroller={scroller}
              flashing={flashing}
              isLoading={conversation.older.value === "loading"}
            />
            {children}
          </div>
        </section>
        <JumpToEnd scroller={scroller} last={turns.at(-1)} />
        <Announcer key={conversation.id} turn={turns.at(-1)} />
      </div>
    </ConversationContext.Provider>
  );
}

function EmptyConversation({ conversation }: { conversation: Conversation }) {
  const session = conversation.session.value;
  if (conversation.problem.value) return null;
  if (!session) return <Loading />;
  // The turns are still loading.
  if (session.turns > 0 || outgoing.value.some((each) => each.sessionId === session.id)) return null;
  return (
    <Empty icon="chat" title="No messages yet">
      Write the first message below.
    </Empty>
  );
}

/** Scroll to the turn in the address once it is loaded.  Returns the turn to highlight. */
function useTarget(conversation: Conversation, scroller: Scroller, target: string | null): string | null {
  const [flashing, setFlashing] = useState<string | null>(null);
  useEffect(() => {
    if (!target) return;
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const arrive = (isThere: boolean) => {
      if (!isCurrent) return;
      const id = isThere ? turnShowing(conversation.turns.peek(), target) : undefined;
      if (!id) {
        showToast("That message is no longer in this conversation.");
        return;
      }
      scroller.toTurn(id);
      setFlashing(id);
      timer = setTimeout(() => setFlashing(null), FLASH_MS);
    };
    conversation.loadThrough(target).then(arrive, showError);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      setFlashing(null);
    };
  }, [conversation, scroller, target]);
  return flashing;
}

/** Return the turn that shows a message: its own, or the one it joined. */
function turnShowing(turns: readonly Turn[], id: string): string | undefined {
  const isIn = (turn: Turn) => turn.items.some((item) => item.role === "user" && item.joinedFrom === id);
  return turns.find((turn) => turn.id === id || isIn(turn))?.id;
}

/** Scroll to the end when the person sends a message. */
function useOwnMessages(conversation: Conversation, scroller: Scroller): void {
  const sent = outgoing.value.filter((each) => each.sessionId === conversation.id).length;
  const before = useRef(sent);
  useEffect(() => {
    if (sent > before.current) scroller.toEnd();
    before.current = sent;
  }, [sent, scroller]);
}

interface OlderProps {
  conversation: Conversation;
  /** Whether the reader is near enough to the top. */
  isWanted: () => boolean;
  scroller: HTMLElement | null;
}

/** Loads older turns when the reader scrolls towards the top. */
function OlderTurns({ conversation, isWanted, scroller }: OlderProps) {
  const [hasFailed, setFailed] = useState(false);
  const state = conversation.older.value;
  const loadIfWanted = useRef(() => {});
  loadIfWanted.current = () => {
    if (state === "more" && !hasFailed && isWanted()) load();
  };
  const load = () => {
    setFailed(false);
    conversation.loadOlder().catch((error: unknown) => {
      setFailed(true);
      showError(error);
    });
  };
  useEffect(() => {
    loadIfWanted.current();
  });
  useEffect(() => {
    const scrolled = () => loadIfWanted.current();
    scroller?.addEventListener("scroll", scrolled, { passive: true });
    return () => scroller?.removeEventListener("scroll", scrolled);
  }, [scroller]);
  if (state === "none") return null;
  return (
    <div class="older">
      {state === "loading" ? (
        <Spinner label="Loading older messages" />
      ) : (
        <Button small onClick={load}>
          Load older messages
        </Button>
      )}
    </div>
  );
}

/** A button that scrolls to the end, and tells when there are new messages. */
function JumpToEnd({ scroller, last }: { scroller: Scroller; last: Turn | undefined }) {
  const seen = useRef(last);
  if (scroller.isAtEnd.value) {
    seen.current = last;
    return null;
  }
  const hasNews = seen.current !== last;
  return (
    <button type="button" class={hasNews ? "jump news" : "jump"} onClick={() => scroller.toEnd()}>
      <Icon name="down" size={16} />
      {hasNews ? "New messages" : "To the end"}
    </button>
  );
}

const ANNOUNCED_MAX_CHARS = 2_000;

/** Announces whole answers and questions to screen readers, never single words. */
function Announcer({ turn }: { turn: Turn | undefined }) {
  const [announcement, announce] = useState("");
  const before = useRef<{ id: string; isOver: boolean; question: string } | null>(null);
  useEffect(() => {
    if (!turn) return;
    const question = openQuestion(turn)?.text ?? "";
    const was = before.current;
    before.current = { id: turn.id, isOver: isOver(turn), question };
    // What was there when the page opened is not announced.
    if (!was || (was.id !== turn.id && !question)) return;
    if (question && question !== was.question) announce(`A question for you: ${question}`);
    else if (isOver(turn) && !was.isOver) announce(ended(turn).slice(0, ANNOUNCED_MAX_CHARS));
  }, [turn]);
  return (
    <div class="unseen" role="status" aria-live="polite">
      {announcement}
    </div>
  );
}

function ended(turn: Turn): string {
  const marker = turn.items.findLast((item) => item.role === "marker");
  return turn.state === "completed" ? answerOf(turn) : marker ? markerText(marker) : "";
}

/** The placeholder of a conversation that is loading. */
function Loading() {
  return (
    <div class="loading" role="status" aria-label="Loading the conversation">
      <div class="loading-message" />
      <div class="loading-line" />
      <div class="loading-line" />
      <div class="loading-line short" />
    </div>
  );
}
