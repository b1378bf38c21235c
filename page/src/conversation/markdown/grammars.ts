/** The highlighting grammars: a chunk of their own, fetched with the first code block. */

import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

/** A piece of highlighted code: text, or pieces within a class. */
export type Piece = string | { classes: string; pieces: Piece[] };

/** Return code in pieces; null if there is no such grammar. */
export function highlighted(grammar: string, text: string): Piece[] | null {
  return lowlight.registered(grammar) ? pieces(lowlight.highlight(grammar, text).children) : null;
}

type Node = ReturnType<typeof lowlight.highlight>["children"][number];

function pieces(nodes: readonly Node[]): Piece[] {
  return nodes.flatMap((node): Piece[] => {
    if (node.type === "text") return [node.value];
    if (node.type !== "element") return [];
    const names = node.properties.className;
    const classes = Array.isArray(names) ? names.join(" ") : "";
    return [{ classes, pieces: pieces(node.children as readonly Node[]) }];
  });
}
