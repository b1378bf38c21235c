/** Memory: what is remembered, as a list and as one document, and the receipts of how it came to be. */

import "./memory.css";
import { to } from "../../router.ts";
import { PageHead } from "../parts/head.tsx";
import { DocumentEditor } from "./document.tsx";
import { Facts } from "./facts.tsx";
import { Receipts } from "./receipts.tsx";

const VIEWS = [
  { id: null, label: "Facts" },
  { id: "document", label: "Document" },
  { id: "receipts", label: "Receipts" },
] as const;

export function MemoryPage({ id }: { id: string | null }) {
  return (
    <>
      <PageHead title="Memory" lead="What is remembered from one conversation to the next, and where it was said." />
      <nav class="views" aria-label="Views of memory">
        {VIEWS.map((view) => (
          <a key={view.label} href={to.control("memory", view.id)} aria-current={view.id === id ? "page" : undefined}>
            {view.label}
          </a>
        ))}
      </nav>
      {id === "document" ? <DocumentEditor /> : id === "receipts" ? <Receipts /> : <Facts />}
    </>
  );
}
