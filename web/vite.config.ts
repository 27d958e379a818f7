import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/lumos/server/static",
    emptyOutDir: true,
    // A data URL would need an exception in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // ELK, which runs in a worker, is larger.
    chunkSizeWarningLimit: 1700,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
});
