/** The control pages: title, icon, and the chunk each is loaded from. */

import type { ComponentType } from "preact";
import type { ControlPage } from "../router.ts";
import type { IconName } from "../ui/icon.tsx";
import { lazy } from "../ui/lazy.tsx";

type Page = ComponentType<{ id: string | null }>;

interface Plan {
  title: string;
  icon: IconName;
  Page: Page;
  load: () => Promise<Page>;
}

const plan = (title: string, icon: IconName, load: () => Promise<Page>): Plan => ({
  title,
  icon,
  load,
  Page: lazy(load),
});

export const PAGES: Readonly<Record<ControlPage, Plan>> = {
  status: plan("Status", "gauge", () => import("./status/page.tsx").then((each) => each.StatusPage)),
  approvals: plan("Approvals", "shield", () => import("./approvals.tsx").then((each) => each.ApprovalsPage)),
  deliveries: plan("Deliveries", "send", () => import("./deliveries.tsx").then((each) => each.DeliveriesPage)),
  processes: plan("Processes", "terminal", () => import("./processes/page.tsx").then((each) => each.ProcessesPage)),
  channels: plan("Channels", "chat", () => import("./channels/page.tsx").then((each) => each.ChannelsPage)),
  people: plan("People", "people", () => import("./people/page.tsx").then((each) => each.PeoplePage)),
  jobs: plan("Jobs", "clock", () => import("./jobs/page.tsx").then((each) => each.JobsPage)),
  memory: plan("Memory", "brain", () => import("./memory/page.tsx").then((each) => each.MemoryPage)),
  webhooks: plan("Webhooks", "webhook", () => import("./webhooks/page.tsx").then((each) => each.WebhooksPage)),
  keys: plan("Keys", "key", () => import("./keys/page.tsx").then((each) => each.KeysPage)),
  settings: plan("Settings", "gear", () => import("./settings/page.tsx").then((each) => each.SettingsPage)),
  doctor: plan("Doctor", "doctor", () => import("./doctor.tsx").then((each) => each.DoctorPage)),
};

/** Grouped: what happens now, whom the agent talks to, what it works with, how the gateway is run. */
export const GROUPS: readonly (readonly ControlPage[])[] = [
  ["status", "approvals", "deliveries", "processes"],
  ["channels", "people"],
  ["jobs", "memory", "webhooks"],
  ["keys", "settings", "doctor"],
];

/** Fetch all chunks, so that the pages open even while the gateway is away. */
export async function fetchPages(): Promise<void> {
  await Promise.allSettled(Object.values(PAGES).map(({ load }) => load()));
}
