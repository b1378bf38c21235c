import { defineConfig, type Plugin } from "vite";

/** A style sheet that is asked for with its origin is refused where a proxy's name is not known, like the script; this one has to show why. */
const plainStyles: Plugin = {
  name: "plain-styles",
  transformIndexHtml: { order: "post", handler: (html) => html.replace(/(<link rel="stylesheet") crossorigin/g, "$1") },
};

export default defineConfig({
  plugins: [plainStyles],
  base: "/",
  build: {
    outDir: "../src/holdfast/web/static",
    emptyOutDir: true,
    target: ["chrome123", "firefox120", "safari17.5"],
    // The page may load nothing that is not a file of its own, so nothing is written into the document.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/webhooks", "/health", "/ready", "/v1"].map((path) => [path, "http://127.0.0.1:8420"]),
    ),
  },
});
