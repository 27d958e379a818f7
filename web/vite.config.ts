import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** The document of a static site: browsers load no modules from disk, so it has a plain script. */
const siteDocument: Plugin[] = [
  {
    name: "site-entry",
    transformIndexHtml: { order: "pre", handler: (html) => html.replace("/src/main.tsx", "/src/site/main.tsx") },
  },
  {
    name: "site-document",
    transformIndexHtml: {
      order: "post",
      handler: (html) => html
        .replace(/<script type="module" crossorigin/g, "<script defer")
        .replace(/ crossorigin/g, "")
        .replace('<meta charset="utf-8" />', `<meta charset="utf-8" /><meta http-equiv="Content-Security-Policy" content="${POLICY}" />`),
    },
  },
];

// `--mode site` builds the page of static sites.
export default defineConfig(({ mode }) => ({
  plugins: [react(), ...(mode === "site" ? siteDocument : [])],
  base: mode === "site" ? "./" : "/",
  build: {
    outDir: mode === "site" ? "../src/lumos/server/static/site" : "../src/lumos/server/static",
    emptyOutDir: true,
    // A data URL would need an exception in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: mode === "site" ? false : { polyfill: false },
    reportCompressedSize: false,
    // ELK, which runs in a worker, is larger.
    chunkSizeWarningLimit: 1700,
    ...(mode === "site" ? { cssCodeSplit: false, rolldownOptions: { checks: { emptyImportMeta: false }, output: { format: "iife" as const, codeSplitting: false } } } : {}),
  },
  // A plain script does not know its own address, but that of its document.
  experimental: mode === "site"
    ? { renderBuiltUrl: (file, { hostType }) => hostType === "js" ? { runtime: `new URL(${JSON.stringify(file)}, document.baseURI).href` } : { relative: true } }
    : {},
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
}));
