/** Web and search tools. */

import { linkTarget } from "../markdown/lexer.ts";
import { Output } from "./output.tsx";
import { type CallProps, type Renderer, textArgument, verb } from "./renderer.ts";

const FENCES = /^\[(?:untrusted data [^\n]*|end of untrusted data [^\n]*)\]\n?/gm;
const RESULT = /^\d+\. (.*)\n {3}(\S+)(?:\n {3}(.*))?$/gm;

/** Return fetched content without the markers around it, which are meant for the model. */
const withoutFences = (result: string) => result.replace(FENCES, "").trim();

export const fetching: Renderer = {
  icon: "globe",
  name: (call) => verb(call, "Fetching", "Fetched", "Fetch"),
  subject: (call) => textArgument(call.args, "url"),
  Body: FetchedPage,
};

export const webSearch: Renderer = {
  icon: "globe",
  name: (call) => verb(call, "Searching the web", "Searched the web", "Search the web"),
  subject: (call) => textArgument(call.args, "query"),
  Body: Results,
};

export const sessionSearch: Renderer = {
  icon: "search",
  name: (call) => verb(call, "Searching conversations", "Searched conversations", "Search conversations"),
  subject: (call) => textArgument(call.args, "query"),
  Body: ({ call }) => <Output text={withoutFences(call.result ?? "")} />,
};

function Address({ url, title }: { url: string; title: string }) {
  const target = linkTarget(url);
  if (!target) return <span>{title}</span>;
  return (
    <a href={target} target="_blank" rel="noopener noreferrer" title={target}>
      {title}
    </a>
  );
}

function FetchedPage({ call }: CallProps) {
  const url = textArgument(call.args, "url");
  return (
    <>
      <p class="call-more">
        <Address url={url} title={url} />
      </p>
      {call.result && <Output text={withoutFences(call.result)} />}
    </>
  );
}

function Results({ call }: CallProps) {
  const found = [...(call.result ?? "").matchAll(RESULT)];
  if (!found.length) return <Output text={withoutFences(call.result ?? "")} />;
  return (
    <ol class="results">
      {found.map(([, title = "", url = "", text = ""]) => (
        <li key={url}>
          <Address url={url} title={title} />
          {text && <p>{text}</p>}
        </li>
      ))}
    </ol>
  );
}
