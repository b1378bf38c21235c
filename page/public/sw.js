/** Keeps the page itself, so that it opens also while the gateway is away; never anything that the gateway says. */

const KEPT = "holdfast-page-1";
const DOCUMENT = "/";
const NAMED_BY_CONTENT = "/assets/";
const BESIDE = ["/icon.svg", "/manifest.webmanifest"];
/** A gateway that takes longer than this for its own page is as good as away. */
const PATIENCE_MS = 4_000;

self.addEventListener("install", (event) => {
  event.waitUntil(install());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(activate());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (pathname === DOCUMENT && request.mode === "navigate") event.respondWith(openPage(event));
  else if (pathname.startsWith(NAMED_BY_CONTENT)) event.respondWith(keptOrFetched(request));
  else if (BESIDE.includes(pathname)) event.respondWith(fetchedOrKept(request));
});

async function install() {
  const cache = await caches.open(KEPT);
  await keep(cache, await fetch(DOCUMENT, { cache: "no-cache" }));
  await cache.addAll(BESIDE);
  await self.skipWaiting();
}

async function activate() {
  const others = (await caches.keys()).filter((name) => name !== KEPT);
  await Promise.all(others.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function openPage(event) {
  const cache = await caches.open(KEPT);
  try {
    const fresh = await fetch(event.request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    // To its end, before anybody sees it: what breaks off is no page, and neither is what others say in its place.
    const isOurs = assetsOf(await fresh.clone().text()).length > 0;
    if (fresh.ok && isOurs) event.waitUntil(keep(cache, fresh.clone()));
    if (fresh.status < 500 && (isOurs || !fresh.ok)) return fresh;
    return (await cache.match(DOCUMENT)) ?? fresh;
  } catch (error) {
    const kept = await cache.match(DOCUMENT);
    if (kept) return kept;
    throw error;
  }
}

/** Keep the document with everything that it loads at once; what belongs to another one goes. */
async function keep(cache, response) {
  const text = await response.clone().text();
  const wanted = assetsOf(text);
  if (!response.ok || wanted.length === 0) return;
  const before = await cache.match(DOCUMENT);
  if (before && (await before.text()) === text) return;
  await cache.addAll(wanted);
  await cache.put(DOCUMENT, response);
  const paths = (await cache.keys()).map((request) => new URL(request.url).pathname);
  const old = paths.filter((path) => path.startsWith(NAMED_BY_CONTENT) && !wanted.includes(path));
  await Promise.all(old.map((path) => cache.delete(path)));
}

/** Return what a document loads at once; one that loads nothing is not ours. */
function assetsOf(text) {
  return [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
}

async function keptOrFetched(request) {
  const cache = await caches.open(KEPT);
  const kept = await cache.match(request);
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok) await cache.put(request, fresh.clone());
  return fresh;
}

async function fetchedOrKept(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await caches.match(request);
    if (kept) return kept;
    throw error;
  }
}
