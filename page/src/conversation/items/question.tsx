/** A question that the agent asks: for consent, for more budget, or for an answer. */

import { useRef, useState } from "preact/hooks";
import { now } from "../../clock.ts";
import { duration } from "../../format.ts";
import type { QuestionItem } from "../../journal/view.ts";
import { isOperator } from "../../sign_in/identity.ts";
import { answer } from "../../turns/actions.ts";
import { Button } from "../../ui/button.tsx";
import { Disclosure } from "../../ui/folding.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Command } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import { useRemembered } from "../context.ts";
import { ExactText, legibleText } from "../exact_text.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { asText, listArgument, textArgument } from "../tools/renderer.ts";
import { answerText, choices, subjectOf } from "./choices.ts";

interface QuestionProps {
  question: QuestionItem;
  turnId: string;
  /** The turn no longer waits. */
  isOver: boolean;
}

/** A question that a turn waits with; once answered, it is one line. */
export function Question({ question, turnId, isOver }: QuestionProps) {
  if (question.answer !== null || isOver) return <AnsweredQuestion question={question} />;
  const isConsent = question.about !== "answer";
  return (
    <section class="question" aria-label={`${isConsent ? "Approval needed" : "Question"}: ${subjectOf(question)}`}>
      <header class="question-head">
        <Icon name={isConsent ? "shield" : "question"} />
        <h2>{isConsent ? "Your approval is needed" : "A question for you"}</h2>
        {question.expiresAt !== null && <Expiry at={question.expiresAt} />}
      </header>
      <QuestionSubject question={question} />
      {isConsent && !isOperator.value ? <OperatorOnly /> : <Answering question={question} turnId={turnId} />}
    </section>
  );
}

function AnsweredQuestion({ question }: { question: QuestionItem }) {
  const [isOpen, setOpen] = useState(false);
  const isConsent = question.about !== "answer";
  const head = (
    <>
      <Icon name={isConsent ? "shield" : "question"} size={16} />
      <span class="settled-text">{question.answer === null ? "Not answered" : answerText(question)}</span>
      <span class={isConsent ? "call-subject" : "call-subject words"}>{subjectOf(question)}</span>
    </>
  );
  return (
    <Disclosure class="settled" isOpen={isOpen} onTurn={setOpen} head={head}>
      <QuestionSubject question={question} />
    </Disclosure>
  );
}

/** Any program on this machine can talk without a key, so consent needs a signed-in operator. */
function OperatorOnly() {
  return (
    <div class="question-hint">
      <p>Only the operator can allow this. Sign in with a link from the terminal, or answer in the terminal:</p>
      <Command text="holdfast link" />
      <Command text="holdfast approvals list" />
    </div>
  );
}

function Answering({ question, turnId }: Pick<QuestionProps, "question" | "turnId">) {
  const [isSending, setSending] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  const options = choices(question);
  const send = async (text: string) => {
    if (isSending) return;
    setSending(true);
    // The focused button is about to be removed; the keyboard focus moves to the turn.
    element.current?.closest<HTMLElement>("[data-turn]")?.focus({ preventScroll: true });
    await attempt(() => answer(turnId, question.questionId, text));
    setSending(false);
  };
  const steer = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLTextAreaElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const chosen = options.find((choice) => choice.keys.includes(event.key.toLowerCase()));
    if (!chosen) return;
    event.preventDefault();
    event.stopPropagation();
    send(chosen.value);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys are those of the buttons inside.
    <div class="answering" ref={element} onKeyDown={steer}>
      {options.length > 0 && (
        <div class={question.about === "answer" ? "decisions" : "decisions consents"}>
          {options.map((choice) => (
            <div class="decision" key={choice.value}>
              <Button look={choice.look} disabled={isSending} onClick={() => send(choice.value)}>
                {choice.label}
                {choice.keys[0] && (
                  <span class="key" aria-hidden="true">
                    {choice.keys.at(-1)}
                  </span>
                )}
              </Button>
              {choice.means && <span class="decision-means">{choice.means}</span>}
            </div>
          ))}
        </div>
      )}
      {question.about === "answer" && (
        <FreeAnswer name={`${turnId} ${question.questionId}`} isSending={isSending} onSend={send} />
      )}
    </div>
  );
}

function Expiry({ at }: { at: number }) {
  const left = at - now.value;
  return <span class="question-expiry">{left > 0 ? `expires in ${duration(left)}` : "expired"}</span>;
}

/** The subject of a question: a command, an outgoing message, a tool of a server, or the text of the question. */
function QuestionSubject({ question }: { question: QuestionItem }) {
  const { detail } = question;
  if (textArgument(detail, "command")) return <CommandSubject detail={detail} />;
  if (textArgument(detail, "target")) return <MessageSubject detail={detail} />;
  if (textArgument(detail, "tool")) {
    return (
      <>
        <p class="question-text">{question.text}</p>
        <ExactText text={asText(detail.arguments)} label="Arguments" />
      </>
    );
  }
  return (
    <div class="question-text">
      <Markdown text={question.text} />
    </div>
  );
}

type Detail = QuestionItem["detail"];

function CommandSubject({ detail }: { detail: Detail }) {
  const reasons = listArgument(detail, "reasons").map(String);
  const files = listArgument(detail, "files").map(String);
  return (
    <>
      <p class="question-text">Run this command{detail.background === true ? " in the background" : ""}?</p>
      <ExactText text={`$ ${textArgument(detail, "command")}`} label="Command" />
      <dl class="question-facts">
        {textArgument(detail, "workdir") && (
          <>
            <dt>Folder</dt>
            <dd>
              <code>{legibleText(textArgument(detail, "workdir"))}</code>
            </dd>
          </>
        )}
        {reasons.length > 0 && (
          <>
            <dt>Reason</dt>
            <dd>{reasons.join("; ")}</dd>
          </>
        )}
        {files.length > 0 && (
          <>
            <dt>Asks again if one of these changes</dt>
            <dd>
              <code>{legibleText(files.join(", "))}</code>
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

function MessageSubject({ detail }: { detail: Detail }) {
  return (
    <>
      <p class="question-text">
        Send this to <code>{legibleText(textArgument(detail, "target"))}</code>?
      </p>
      <ExactText text={textArgument(detail, "text")} label="Message" />
    </>
  );
}

interface FreeAnswerProps {
  /** Identifies the question. */
  name: string;
  isSending: boolean;
  onSend: (text: string) => Promise<void>;
}

/** A field for a free answer. */
function FreeAnswer({ name, isSending, onSend }: FreeAnswerProps) {
  const [text, setText] = useRemembered(`answer ${name}`, "");
  const send = () => {
    if (text.trim()) onSend(text.trim());
  };
  return (
    <form
      class="free-answer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        class="input"
        rows={1}
        aria-label="Your answer"
        placeholder="Your answer"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <Button look="main" icon="send" type="submit" disabled={isSending || !text.trim()}>
        Answer
      </Button>
    </form>
  );
}
