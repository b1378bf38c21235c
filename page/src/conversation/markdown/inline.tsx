/** Tokens of Markdown as nodes: what stands within a line. */

import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useFetched } from "../fetched.ts";
import { drawn, linked } from "./destinations.ts";
import { decoded } from "./entities.ts";

export function Inline({ tokens }: { tokens: readonly Token[] }) {
  return (
    <>
      {tokens.map((token, index) => (
        <Piece key={index} token={token as Tokens.Generic} />
      ))}
    </>
  );
}

function Piece({ token }: { token: Tokens.Generic }): ComponentChildren {
  const inner = <Inline tokens={token.tokens ?? []} />;
  switch (token.type) {
    case "strong":
      return <strong>{inner}</strong>;
    case "em":
      return <em>{inner}</em>;
    case "del":
      return <del>{inner}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link link={token as Tokens.Link} />;
    case "image":
      return <Picture image={token as Tokens.Image} />;
    case "text":
      return token.tokens ? inner : decoded(token.text);
    case "checkbox":
      return null;
    default:
      return token.text ?? token.raw;
  }
}

function Link({ link }: { link: Tokens.Link }) {
  const target = linked(link.autolink ? link.href : decoded(link.href));
  const text = link.autolink ? link.text : <Inline tokens={link.tokens} />;
  if (!target) return <span title={link.href}>{text}</span>;
  return (
    <a
      href={target}
      target="_blank"
      rel="noopener noreferrer"
      title={link.title ? `${link.title} (${target})` : target}
    >
      {text}
    </a>
  );
}

/** A picture from elsewhere is only linked to: fetching it would tell somebody that it is looked at. */
function Picture({ image }: { image: Tokens.Image }) {
  const href = decoded(image.href);
  const source = drawn(href);
  if (source?.startsWith("/")) return <OwnPicture path={source} alt={image.text} />;
  if (source) return <img src={source} alt={image.text} title={image.title ?? undefined} />;
  const target = linked(href);
  const name = image.text || "picture";
  if (!target) return <span>[{name}]</span>;
  return (
    <a href={target} target="_blank" rel="noopener noreferrer" title={target}>
      [{name}]
    </a>
  );
}

function OwnPicture({ path, alt }: { path: string; alt: string }) {
  const { source, isMissing } = useFetched(path);
  return source ? <img src={source} alt={alt} /> : <span>{isMissing && `[${alt || "picture"}]`}</span>;
}
