import { defineConfig, type Plugin } from "vite";

/** Behind a proxy whose name is not allowed, `crossorigin` assets are refused.  The style sheet is needed for the message that says so. */
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
    // The content security policy forbids inline scripts and data URLs, so every asset is a file.
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
