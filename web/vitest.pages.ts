/** Every page in a DOM without a browser, against the server at LUMOS_URL: see tests/web/test_pages.py. */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  test: {
    include: ["tests/pages.mjs"],
    // A process of its own would have to answer within a minute, which is too short on a busy machine.
    pool: "threads",
    environment: "happy-dom",
    environmentOptions: { happyDOM: { url: process.env.LUMOS_URL ?? "http://127.0.0.1:8765" } },
    testTimeout: 120_000,
  },
});
