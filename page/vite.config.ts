import { defineConfig } from "vite";

export default defineConfig({
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
