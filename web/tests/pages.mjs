/** Renders every page with the answers of a real server, in a DOM without a browser. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PAGES } from "../scripts/pages.mjs";
import { start } from "../src/app";

let problems;
let stop;

beforeEach(() => {
  problems = [];
  const root = document.createElement("div");
  root.id = "root";
  document.body.replaceChildren(root);
  const fetched = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (...request) => {
    const response = await fetched(...request);
    if (response.status >= 400) problems.push(`${response.status} ${response.url}`);
    return response;
  });
  vi.spyOn(console, "error").mockImplementation((...parts) => { problems.push(parts.map(String).join(" ")); });
});

afterEach(() => {
  stop?.();
  vi.restoreAllMocks();
});

const shown = () => document.body.textContent ?? "";

it.each(Object.entries(PAGES))("%s is drawn", async (_name, [path, text]) => {
  window.history.pushState(null, "", path);
  stop = start();
  await vi.waitFor(() => {
    expect(shown()).toContain(text);
    expect(document.querySelector(".skeleton")).toBeNull();
  }, { timeout: 60_000, interval: 50 });
  expect(shown()).not.toMatch(/undefined|NaN|\[object |Invalid Date/);
  expect(problems).toEqual([]);
});
