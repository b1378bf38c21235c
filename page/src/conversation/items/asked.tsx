import type { QuestionItem } from "../../journal/view.ts";
import { legible } from "../legible.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { list, word, written } from "../tools/arguments.ts";
import { Exact } from "./exact.tsx";

/** What exactly is asked about: a command, a message to somebody, a tool of a server; else the words of the question. */
export function Asked({ question }: { question: QuestionItem }) {
  const { detail } = question;
  if (word(detail, "command")) return <AskedCommand detail={detail} />;
  if (word(detail, "target")) return <AskedSending detail={detail} />;
  if (word(detail, "tool")) {
    return (
      <>
        <p class="question-text">{question.text}</p>
        <Exact text={written(detail.arguments)} label="Arguments" />
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

function AskedCommand({ detail }: { detail: Detail }) {
  const reasons = list(detail, "reasons").map(String);
  const files = list(detail, "files").map(String);
  return (
    <>
      <p class="question-text">May I run this command{detail.background === true ? " in the background" : ""}?</p>
      <Exact text={`$ ${word(detail, "command")}`} label="Command" />
      <dl class="question-facts">
        {word(detail, "workdir") && (
          <>
            <dt>Folder</dt>
            <dd>
              <code>{legible(word(detail, "workdir"))}</code>
            </dd>
          </>
        )}
        {reasons.length > 0 && (
          <>
            <dt>Why it is asked</dt>
            <dd>{reasons.join("; ")}</dd>
          </>
        )}
        {files.length > 0 && (
          <>
            <dt>Asked again if one of these changes</dt>
            <dd>
              <code>{legible(files.join(", "))}</code>
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

function AskedSending({ detail }: { detail: Detail }) {
  return (
    <>
      <p class="question-text">
        May I send this to <code>{legible(word(detail, "target"))}</code>?
      </p>
      <Exact text={word(detail, "text")} label="Message" />
    </>
  );
}
