/** The frame of the control pages. */

import "./control.css";
import "./parts.css";
import { useEffect, useRef } from "preact/hooks";
import { type ControlPage, to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { ErrorBoundary } from "../ui/parts.tsx";
import type { Status } from "../wire.ts";
import { gatewayStatus, useGatewayStatus } from "./gateway_status.ts";
import { fetchPages, GROUPS, PAGES } from "./pages.ts";

/** The requested page loads first. */
const PREFETCH_AFTER_MS = 1_500;

export function Control({ page, id }: { page: ControlPage; id: string | null }) {
  useGatewayStatus();
  useEffect(() => {
    const timer = setTimeout(fetchPages, PREFETCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const { Page } = PAGES[page];
  return (
    <div class="control">
      <Navigation current={page} />
      {/* Each page starts at its top. */}
      <div class="control-page" key={`${page}/${id ?? ""}`}>
        <div class="control-column">
          <ErrorBoundary>
            <Page id={id} />
          </ErrorBoundary>
        </div>
      </div>
    </div>
  );
}

function Navigation({ current }: { current: ControlPage }) {
  const bar = useRef<HTMLElement>(null);
  // On a phone the pages are one row, wider than the screen.
  useEffect(() => {
    bar.current
      ?.querySelector(`[href="${to.control(current)}"]`)
      ?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav class="control-nav" aria-label="Control" ref={bar}>
      {GROUPS.map((group) => (
        <ul key={group[0]} class="control-group">
          {group.map((page) => (
            <NavigationLink key={page} page={page} current={page === current} />
          ))}
        </ul>
      ))}
    </nav>
  );
}

function NavigationLink({ page, current }: { page: ControlPage; current: boolean }) {
  const { title, icon } = PAGES[page];
  const waiting = waitingOn(page, gatewayStatus.value.value);
  return (
    <li>
      <a class="control-link" href={to.control(page)} aria-current={current ? "page" : undefined}>
        <Icon name={icon} size={17} />
        {title}
        {waiting > 0 && (
          <span class="control-count">
            {waiting}
            <span class="unseen"> waiting for you</span>
          </span>
        )}
      </a>
    </li>
  );
}

/** Return how many decisions of the person a page has. */
function waitingOn(page: ControlPage, status: Status | undefined): number {
  if (page === "approvals") return status?.questions ?? 0;
  return page === "people" ? (status?.pairings ?? 0) : 0;
}
