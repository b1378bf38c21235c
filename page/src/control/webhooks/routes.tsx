import { useState } from "preact/hooks";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/parts.tsx";
import type { NewRoute, RouteView } from "../../wire.ts";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Address } from "./address.tsx";
import { RouteForm } from "./form.tsx";
import { RouteMarks } from "./marks.tsx";
import { ShownOnce } from "./shown.tsx";

/** All routes, and the way to one more. */
export function RoutesPage() {
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
        lead="Other systems hand something in; the agent answers, and the answer goes where you say."
      >
        <Button look="main" icon="plus" disabled={!list.listed.value.items} onClick={() => setAsking(true)}>
          New route
        </Button>
      </PageHead>
      <Listing list={list} empty={<NoRoutes />}>
        {(routes) => (
          <ul class="routes">
            {routes.map((route) => (
              <li key={route.name}>
                <RouteCard route={route} />
              </li>
            ))}
          </ul>
        )}
      </Listing>
      {asking && <RouteForm onSaved={onSaved} onClose={() => setAsking(false)} />}
      {made && <ShownOnce made={made} onClose={() => setMade(null)} />}
    </>
  );
}

function RouteCard({ route }: { route: RouteView }) {
  return (
    <article class="panel route">
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
      A route has an address that GitHub, Slack, Stripe, a monitor or a script of yours can send to. Each delivery
      becomes a prompt, is answered once, and shows here.
    </Empty>
  );
}
