/** Markdown as components.  Nothing here becomes HTML that a browser would parse. */

import "./markdown.css";
import type { Token, Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { bytes } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { memo, Scrollable } from "../../ui/parts.tsx";
import { useGatewayPicture } from "../pictures.tsx";
import { Code } from "./code.tsx";
import { decodeReferences, linkTarget, parseMarkdown, pictureSource } from "./lexer.ts";
import { closeOpenMarks, definitions, endsInFence, regrown, sections } from "./sections.ts";

/** This much is drawn at once; the rest on request. */
const DRAWN_MAX_CHARS = 60_000;
/** Text that was drawn while it streamed stays, up to the length of the longest answers. */
const GROWN_MAX_CHARS = 300_000;

interface MarkdownProps {
  text: string;
  /** The text is still streaming, so an open mark at the end is incomplete. */
  growing?: boolean;
}

/** Markdown as components.  Finished sections are not parsed again while the text grows. */
export function Markdown({ text, growing = false }: MarkdownProps) {
  const [most, setMost] = useState(DRAWN_MAX_CHARS);
  // Text that was seen streaming stays whole: it has been drawn piece by piece.
  const isWhole = useRef(growing);
  isWhole.current ||= growing;
  const plain = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  const limit = isWhole.current ? Math.max(most, GROWN_MAX_CHARS) : most;
  const visible = plain.length > limit ? plain.slice(0, limit) : plain;
  const before = useRef<readonly string[]>([]);
  before.current = before.current.length ? regrown(before.current, visible) : sections(visible);
  const defined = definitions(visible);
  const last = before.current.length - 1;
  return (
    <div class="markdown" dir="auto">
      {before.current.map((section, index) => (
        <Section key={index} text={section} defined={defined} growing={growing && index === last} />
      ))}
      {visible.length < plain.length && (
        <p class="markdown-more">
          <Button small aria-expanded={false} onClick={() => setMost(limit * 2)}>
            Show more ({bytes(plain.length - visible.length)} left)
          </Button>
        </p>
      )}
    </div>
  );
}

interface SectionProps {
  text: string;
  defined: string;
  growing: boolean;
}

const Section = memo(({ text, defined, growing }: SectionProps) => {
  const isHalf = growing && endsInFence(text);
  const source = growing && !isHalf ? closeOpenMarks(text) : text;
  const tokens = parseMarkdown(defined ? `${source}\n\n${defined}` : source);
  return tokens ? <Blocks tokens={tokens} growing={isHalf} /> : <p class="markdown-plain">{text}</p>;
});

interface BlocksProps {
  tokens: readonly Token[];
  /** The last block is incomplete. */
  growing?: boolean;
}

function Blocks({ tokens, growing = false }: BlocksProps) {
  const last = tokens.length - 1;
  return (
    <>
      {tokens.map((token, index) => (
        <Block key={index} token={token as Tokens.Generic} growing={growing && index === last} />
      ))}
    </>
  );
}

function Block({ token, growing }: { token: Tokens.Generic; growing: boolean }): VNode | null {
  switch (token.type) {
    case "space":
    case "def":
    case "checkbox":
      return null;
    case "hr":
      return <hr />;
    case "code":
      return <Code text={token.text} language={token.lang ?? ""} growing={growing} />;
    case "heading":
      return <Heading depth={token.depth} tokens={token.tokens ?? []} />;
    case "list":
      return <List list={token as Tokens.List} growing={growing} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "blockquote":
      return (
        <blockquote>
          <Blocks tokens={token.tokens ?? []} growing={growing} />
        </blockquote>
      );
    case "html":
      return <p class="markdown-html">{token.text.trimEnd()}</p>;
    case "text":
      return <Inline tokens={token.tokens ?? [token]} />;
    default:
      return (
        <p>
          <Inline tokens={token.tokens ?? [token]} />
        </p>
      );
  }
}

/** The only h1 is the page's own. */
function Heading({ depth, tokens }: { depth: number; tokens: readonly Token[] }) {
  const content = <Inline tokens={tokens} />;
  if (depth === 1) return <h2 class="heading-1">{content}</h2>;
  if (depth === 2) return <h3 class="heading-2">{content}</h3>;
  return depth === 3 ? <h4 class="heading-3">{content}</h4> : <h5 class="heading-4">{content}</h5>;
}

function List({ list, growing }: { list: Tokens.List; growing: boolean }) {
  const items = list.items.map((item, index) => (
    <li key={index} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="Done" />}
      <Blocks tokens={item.tokens} growing={growing && index === list.items.length - 1} />
    </li>
  ));
  const first = Number(list.start);
  return list.ordered ? <ol {...(first === 1 ? {} : { start: first })}>{items}</ol> : <ul>{items}</ul>;
}

/** A cell with more text keeps a minimum width; the table scrolls instead. */
const WORDY_CHARS = 24;

const classOf = ({ align, text }: Tokens.TableCell) => `${align ?? ""}${text.length > WORDY_CHARS ? " wordy" : ""}`;

function Table({ table }: { table: Tokens.Table }) {
  return (
    <Scrollable class="table" label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index} scope="col" class={cell.align ?? undefined}>
                <Inline tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} class={classOf(cell)}>
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function Inline({ tokens }: { tokens: readonly Token[] }) {
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
      return token.tokens ? inner : decodeReferences(token.text);
    case "checkbox":
      return null;
    default:
      return token.text ?? token.raw;
  }
}

function Link({ link }: { link: Tokens.Link }) {
  const target = linkTarget(link.autolink ? link.href : decodeReferences(link.href));
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

/** A picture from elsewhere is only linked: fetching it would tell a third party that it is viewed. */
function Picture({ image }: { image: Tokens.Image }) {
  const href = decodeReferences(image.href);
  const source = pictureSource(href);
  if (source?.startsWith("/")) return <OwnPicture path={source} alt={image.text} />;
  if (source) return <img src={source} alt={image.text} title={image.title ?? undefined} />;
  const target = linkTarget(href);
  const name = image.text || "picture";
  if (!target) return <span>[{name}]</span>;
  return (
    <a href={target} target="_blank" rel="noopener noreferrer" title={target}>
      [{name}]
    </a>
  );
}

function OwnPicture({ path, alt }: { path: string; alt: string }) {
  const { source, isMissing } = useGatewayPicture(path);
  return source ? <img src={source} alt={alt} /> : <span>{isMissing && `[${alt || "picture"}]`}</span>;
}
