/** Tokens of Markdown as nodes: the blocks.  Nothing here becomes HTML that a browser would read. */

import type { Token, Tokens } from "marked";
import type { VNode } from "preact";
import { Scrollable } from "../scrollable.tsx";
import { Code } from "./code.tsx";
import { Inline } from "./inline.tsx";

interface BlocksProps {
  tokens: readonly Token[];
  /** The last block is not finished. */
  growing?: boolean;
}

export function Blocks({ tokens, growing = false }: BlocksProps) {
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

/** The one heading of the first rank is the page's own. */
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

/** A cell with so much in it is not squeezed to the width of a word; the table scrolls instead. */
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
