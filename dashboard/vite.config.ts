import { defineConfig } from "vite";

// Nothing may be inlined: the page is served under a policy that allows its own files alone.
export default defineConfig({
  build: {
    outDir: "../src/bullpen/server/dashboard",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    // `light-dark()` stays as it is: the browsers named here know it.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8787" } },
});
