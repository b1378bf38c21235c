import { useState } from "preact/hooks";
import { post, remove } from "../../api.ts";
import { count } from "../../format.ts";
import { go, to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { useLoaded } from "../../ui/load.ts";
import { attempt, tell } from "../../ui/toast.tsx";
import type { NewRoute, Removed, RouteView } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/head.tsx";
import { Section } from "../parts/section.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { Address } from "./address.tsx";
import { Deliveries } from "./deliveries.tsx";
import { RouteForm } from "./form.tsx";
import { RouteMarks } from "./marks.tsx";
import { planned, written } from "./plan.ts";
import { ShownOnce } from "./shown.tsx";
import { Trial } from "./trial.tsx";

const REFRESHED_MS = 10_000;
const ALL = { label: "Webhooks", href: to.control("webhooks") };

/** One route: what it does, a delivery to try it with, and those that came. */
export function RoutePage({ name }: { name: string }) {
  const [loaded, again] = useLoaded<RouteView>(`/api/webhooks/${encodeURIComponent(name)}`, REFRESHED_MS);
  const { value: route, error } = loaded.value;
  return (
    <>
      <PageHead title={name} back={ALL}>
        {route?.source === "added" && <Actions route={route} onChanged={again} />}
      </PageHead>
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {!route && error === undefined && <Skeleton />}
      {route && (
        <>
          <Said route={route} />
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

function Said({ route }: { route: RouteView }) {
  return (
    <div class="panel route">
      <RouteMarks route={route} />
      <Address path={route.path} />
      <p class="route-prompt whole">{route.prompt}</p>
      <Facts
        facts={[
          { name: "Answers go to", value: <code>{route.deliver}</code> },
          { name: "Events", value: route.events.length ? route.events.join(", ") : "all" },
          { name: "Per minute", value: route.rate_limit ? count(route.rate_limit) : "any number" },
          { name: "Filters", value: route.filters ? <code>{JSON.stringify(route.filters)}</code> : null },
        ]}
      />
      {route.source === "configuration" && (
        <p class="faint">It stands in holdfast.toml, and is changed or removed there.</p>
      )}
    </div>
  );
}

function Actions({ route, onChanged }: { route: RouteView; onChanged: () => Promise<void> }) {
  const [doing, setDoing] = useState<"nothing" | "changing" | "removing">("nothing");
  const [saved, setSaved] = useState<NewRoute | null>(null);
  const done = () => setDoing("nothing");
  const onSaved = (made: NewRoute) => {
    done();
    tell("Saved.");
    if (made.secret) setSaved(made);
    onChanged();
  };
  return (
    <>
      <Button onClick={() => pause(route, onChanged)}>{route.enabled ? "Pause" : "Resume"}</Button>
      <Button icon="edit" onClick={() => setDoing("changing")}>
        Change
      </Button>
      <Button icon="trash" look="bad" onClick={() => setDoing("removing")}>
        Remove…
      </Button>
      {doing === "changing" && <RouteForm route={route} onSaved={onSaved} onClose={done} />}
      {doing === "removing" && (
        <Confirm title={`Remove ${route.name}?`} action="Remove" onConfirm={() => take(route)} onClose={done}>
          Its address answers 404 from now on, and its secret is gone. Conversations of its deliveries stay.
        </Confirm>
      )}
      {saved && <ShownOnce made={saved} onClose={() => setSaved(null)} />}
    </>
  );
}

async function pause(route: RouteView, onChanged: () => Promise<void>): Promise<void> {
  const plan = { ...planned(written(route), route), enabled: !route.enabled };
  await attempt(() => post<NewRoute>("/api/webhooks", plan));
  await onChanged();
}

async function take(route: RouteView): Promise<void> {
  await remove<Removed>(`/api/webhooks/${encodeURIComponent(route.name)}`);
  tell("Removed.");
  go(to.control("webhooks"), { replace: true });
}
