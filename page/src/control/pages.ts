/** The control pages: what each is called, and where it is fetched from when it is first wanted. */

import type { ComponentType } from "preact";
import type { ControlPage } from "../router.ts";
import type { IconName } from "../ui/icon.tsx";
import { lazy } from "../ui/lazy.tsx";

interface Plan {
  title: string;
  icon: IconName;
  Page: ComponentType<{ id: string | null }>;
}

export const PAGES: Readonly<Record<ControlPage, Plan>> = {
  status: {
    title: "Status",
    icon: "gauge",
    Page: lazy(() => import("./status/page.tsx").then((each) => each.StatusPage)),
  },
  approvals: {
    title: "Approvals",
    icon: "shield",
    Page: lazy(() => import("./approvals/page.tsx").then((each) => each.ApprovalsPage)),
  },
  deliveries: {
    title: "Deliveries",
    icon: "send",
    Page: lazy(() => import("./deliveries/page.tsx").then((each) => each.DeliveriesPage)),
  },
  processes: {
    title: "Processes",
    icon: "terminal",
    Page: lazy(() => import("./processes/page.tsx").then((each) => each.ProcessesPage)),
  },
  jobs: {
    title: "Jobs",
    icon: "clock",
    Page: lazy(() => import("./jobs/page.tsx").then((each) => each.JobsPage)),
  },
  memory: {
    title: "Memory",
    icon: "brain",
    Page: lazy(() => import("./memory/page.tsx").then((each) => each.MemoryPage)),
  },
  webhooks: {
    title: "Webhooks",
    icon: "webhook",
    Page: lazy(() => import("./webhooks/page.tsx").then((each) => each.WebhooksPage)),
  },
  keys: {
    title: "Keys",
    icon: "key",
    Page: lazy(() => import("./keys/page.tsx").then((each) => each.KeysPage)),
  },
  settings: {
    title: "Settings",
    icon: "gear",
    Page: lazy(() => import("./settings/page.tsx").then((each) => each.SettingsPage)),
  },
  doctor: {
    title: "Doctor",
    icon: "doctor",
    Page: lazy(() => import("./doctor/page.tsx").then((each) => each.DoctorPage)),
  },
};

/** What belongs together: what goes on now, what the agent works with, and how the gateway is run. */
export const GROUPS: readonly (readonly ControlPage[])[] = [
  ["status", "approvals", "deliveries", "processes"],
  ["jobs", "memory", "webhooks"],
  ["keys", "settings", "doctor"],
];
