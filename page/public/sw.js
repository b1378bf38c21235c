/** Caches the page itself, so that it opens while the gateway is away; never caches answers of the API. */

const CACHE = "holdfast-page-1";
const DOCUMENT = "/";
const HASHED_ASSETS = "/assets/";
const STATIC_FILES = ["/icon.svg", "/manifest.webmanifest"];
/** A gateway that takes longer for its own page counts as away. */
const TIMEOUT_MS = 4_000;

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
  else if (pathname.startsWith(HASHED_ASSETS)) event.respondWith(cacheFirst(request));
  else if (STATIC_FILES.includes(pathname)) event.respondWith(networkFirst(request));
});

async function install() {
  const cache = await caches.open(CACHE);
  await cacheDocument(cache, await fetch(DOCUMENT, { cache: "no-cache" }));
  await cache.addAll(STATIC_FILES);
  await self.skipWaiting();
}

async function activate() {
  const others = (await caches.keys()).filter((name) => name !== CACHE);
  await Promise.all(others.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function openPage(event) {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await fetch(event.request, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    // Read to its end first: a truncated document is not the page, and neither is another server's.
    const isPage = assetsOf(await fresh.clone().text()).length > 0;
    if (fresh.ok && isPage) event.waitUntil(cacheDocument(cache, fresh.clone()));
    if (fresh.status < 500 && (isPage || !fresh.ok)) return fresh;
    return (await cache.match(DOCUMENT)) ?? fresh;
  } catch (error) {
    const cached = await cache.match(DOCUMENT);
    if (cached) return cached;
    throw error;
  }
}

/** Cache the document with the assets it loads at once, and delete the assets of older documents. */
async function cacheDocument(cache, response) {
  const text = await response.clone().text();
  const wanted = assetsOf(text);
  if (!response.ok || wanted.length === 0) return;
  const before = await cache.match(DOCUMENT);
  if (before && (await before.text()) === text) return;
  await cache.addAll(wanted);
  await cache.put(DOCUMENT, response);
  const paths = (await cache.keys()).map((request) => new URL(request.url).pathname);
  const old = paths.filter((path) => path.startsWith(HASHED_ASSETS) && !wanted.includes(path));
  await Promise.all(old.map((path) => cache.delete(path)));
}

/** Return the assets that a document loads at once; the page always loads some. */
function assetsOf(text) {
  return [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
}

async function cacheFirst(request) {
  const cache = await caches.open(CACHE);
  const cached = await cache.match(request);
  if (cached) return cached;
  const fresh = await fetch(request);
  if (fresh.ok) await cache.put(request, fresh.clone());
  return fresh;
}

async function networkFirst(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const cached = await caches.match(request);
    if (cached) return cached;
    throw error;
  }
}
