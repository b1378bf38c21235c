/** Webhooks: routes that turn deliveries of other systems into prompts. */

import "./webhooks.css";
import { useState } from "preact/hooks";
import { post, remove } from "../../api.ts";
import { count } from "../../format.ts";
import { go, to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Badge, Command, Empty } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import { attempt, showToast } from "../../ui/toast.tsx";
import type { NewRoute, Removed, RouteView } from "../../wire.ts";
import { Listing, useList } from "../list.tsx";
import { Confirm, ErrorNotice, Facts, PageHead, Section, Skeleton } from "../parts.tsx";
import { Deliveries, Trial } from "./deliveries.tsx";
import { RouteForm, routeFields, routePlan } from "./form.tsx";

export function WebhooksPage({ id }: { id: string | null }) {
  return id === null ? <RoutesPage /> : <RoutePage name={id} />;
}

/** All routes. */
function RoutesPage() {
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<NewRoute | null>(null);
  const list = useList<RouteView>("/api/webhooks");
  const onSaved = (route: NewRoute) => {
    setAsking(false);
    setMade(route);
    list.refresh();
  };
  return (
    <>
      <PageHead
        title="Webhooks"
        lead="Other systems send events; the agent answers, and the answer is delivered where you choose."
      >
        <Button look="main" icon="plus" disabled={!list.listed.value.items} onClick={() => setAsking(true)}>
          New route
        </Button>
      </PageHead>
      <Listing list={list} empty={<NoRoutes />}>
        {(routes) => (
          <ul class="cards">
            {routes.map((route) => (
              <li key={route.name}>
                <RouteCard route={route} />
              </li>
            ))}
          </ul>
        )}
      </Listing>
      {asking && <RouteForm onSaved={onSaved} onClose={() => setAsking(false)} />}
      {made && <RouteSavedDialog made={made} onClose={() => setMade(null)} />}
    </>
  );
}

function RouteCard({ route }: { route: RouteView }) {
  return (
    <article class="panel card">
      <div class="route-head">
        <h2>
          <a href={to.control("webhooks", route.name)}>{route.name}</a>
        </h2>
        <RouteMarks route={route} />
      </div>
      <p class="route-prompt">{route.prompt}</p>
      <Address path={route.path} />
    </article>
  );
}

function NoRoutes() {
  return (
    <Empty icon="webhook" title="No routes yet">
      A route has an address that GitHub, Slack, Stripe, a monitor or your own script can send to. Each delivery becomes
      a prompt and is answered once.
    </Empty>
  );
}

const POLL_MS = 10_000;
const ALL = { label: "Webhooks", href: to.control("webhooks") };

/** One route: its settings, a sample delivery, and recent deliveries. */
function RoutePage({ name }: { name: string }) {
  const [loaded, again] = useLoaded<RouteView>(`/api/webhooks/${encodeURIComponent(name)}`, POLL_MS);
  const { value: route, error } = loaded.value;
  return (
    <>
      <PageHead title={name} back={ALL}>
        {route?.source === "added" && <Actions route={route} onChanged={again} />}
      </PageHead>
      {error !== undefined && <ErrorNotice error={error} onRetry={again} />}
      {!route && error === undefined && <Skeleton />}
      {route && (
        <>
          <RouteFacts route={route} />
          <Section title="Try it">
            <Trial route={route} />
          </Section>
          <Section title="Recent deliveries">
            <Deliveries route={route.name} />
          </Section>
        </>
      )}
    </>
  );
}

function RouteFacts({ route }: { route: RouteView }) {
  return (
    <div class="panel card">
      <RouteMarks route={route} />
      <Address path={route.path} />
      <p class="route-prompt whole">{route.prompt}</p>
      <Facts
        facts={[
          { name: "Delivers to", value: <code>{route.deliver}</code> },
          { name: "Events", value: route.events.length ? route.events.join(", ") : "all" },
          { name: "Per minute", value: route.rate_limit ? count(route.rate_limit) : "no limit" },
          { name: "Filters", value: route.filters ? <code>{JSON.stringify(route.filters)}</code> : null },
        ]}
      />
      {route.source === "configuration" && (
        <p class="faint">This route is defined in holdfast.toml. Change or remove it there.</p>
      )}
    </div>
  );
}

function Actions({ route, onChanged }: { route: RouteView; onChanged: () => Promise<void> }) {
  const [action, setDoing] = useState<"nothing" | "changing" | "removing">("nothing");
  const [saved, setSaved] = useState<NewRoute | null>(null);
  const done = () => setDoing("nothing");
  const onSaved = (made: NewRoute) => {
    done();
    showToast("Saved.");
    if (made.secret) setSaved(made);
    onChanged();
  };
  return (
    <>
      <Button onClick={() => pause(route, onChanged)}>{route.enabled ? "Pause" : "Resume"}</Button>
      <Button icon="edit" onClick={() => setDoing("changing")}>
        Edit
      </Button>
      <Button icon="trash" look="bad" onClick={() => setDoing("removing")}>
        Remove…
      </Button>
      {action === "changing" && <RouteForm route={route} onSaved={onSaved} onClose={done} />}
      {action === "removing" && (
        <Confirm title={`Remove ${route.name}?`} action="Remove" onConfirm={() => removeRoute(route)} onClose={done}>
          Its address will answer 404, and its secret is deleted. The conversations of its deliveries stay.
        </Confirm>
      )}
      {saved && <RouteSavedDialog made={saved} onClose={() => setSaved(null)} />}
    </>
  );
}

async function pause(route: RouteView, onChanged: () => Promise<void>): Promise<void> {
  const plan = { ...routePlan(routeFields(route), route), enabled: !route.enabled };
  await attempt(() => post<NewRoute>("/api/webhooks", plan));
  await onChanged();
}

async function removeRoute(route: RouteView): Promise<void> {
  await remove<Removed>(`/api/webhooks/${encodeURIComponent(route.name)}`);
  showToast("Removed.");
  go(to.control("webhooks"), { replace: true });
}

/** The properties of a route as badges. */
function RouteMarks({ route }: { route: RouteView }) {
  return (
    <span class="route-marks">
      {!route.enabled && <Badge tone="busy">paused</Badge>}
      {route.signed ? <Badge tone="good">signed</Badge> : <Badge tone="bad">unsigned</Badge>}
      {route.scheme !== "any" && <Badge>{route.scheme}</Badge>}
      {route.deliver_only && <Badge tone="note">no agent</Badge>}
      <Badge>{route.source === "configuration" ? "in holdfast.toml" : "added"}</Badge>
    </span>
  );
}

/** The address of a route, as this browser reaches the gateway. */
function Address({ path }: { path: string }) {
  return <Command text={location.origin + path} />;
}

/** What the sender needs to know; the secret is shown once. */
function RouteSavedDialog({ made, onClose }: { made: NewRoute; onClose: () => void }) {
  return (
    <Dialog title={`Route ${made.route.name} is ready`} onClose={onClose}>
      <p>Give its sender this address:</p>
      <Address path={made.route.path} />
      {made.secret && (
        <>
          <p>and this secret to sign with. Copy it now. It is not shown again.</p>
          <Command text={made.secret} />
        </>
      )}
      <div class="dialog-actions">
        <Button look="main" onClick={onClose}>
          {made.secret ? "Done" : "Close"}
        </Button>
      </div>
    </Dialog>
  );
}
