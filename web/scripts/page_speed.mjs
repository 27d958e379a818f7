// Measures the pages of a running server in Chromium.
// Usage: node page_speed.mjs URL WORD URN, where WORD is typed into the search field and URN is of one dataset.
// Prints one line of JSON: for each page the median milliseconds until it is readable, with scripts in the
// browser's cache, beside those of a page of the same server that has no script; and for each typed letter
// the milliseconds until the results of the new text are shown.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const RUNS = 5;
const [url, word, urn] = process.argv.slice(2);
const q = (values) => new URLSearchParams(values).toString();
const PAGES = {
  empty: ["/health", "body"],
  home: ["/", ".tile .value"],
  all: ["/search", ".hit"],
  search: [`/search?${q({ q: word })}`, ".hit"],
  dataset: [`/dataset?${q({ urn })}`, ".tree tbody tr"],
  lineage: [`/lineage?${q({ urn })}`, ".react-flow__node"],
  operations: ["/operations", ".tabs"],
};
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "lumos-speed-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const median = (values) => values.sort((one, two) => one - two)[Math.floor(values.length / 2)];
const pages = {};
// The first round fills the caches of the browser and of the server.
for (let run = 0; run <= RUNS; run += 1) {
  for (const [name, [path, selector]] of Object.entries(PAGES)) {
    const page = await browser.newPage();
    const start = performance.now();
    await page.goto(url + path, { waitUntil: "commit" });
    await page.locator(selector).first().waitFor({ timeout: 120_000 });
    if (run > 0) (pages[name] ??= []).push(performance.now() - start);
    await page.close();
  }
}
const page = await browser.newPage();
await page.goto(`${url}/search`);
await page.locator(".hit").first().waitFor();
await page.keyboard.press("/");
const letters = [];
for (let length = 1; length <= word.length; length += 1) {
  const start = performance.now();
  await page.keyboard.press(word[length - 1]);
  await page.waitForFunction((text) => document.querySelector("h1")?.textContent === `Results for “${text}”` && document.querySelector("[aria-live]")?.textContent !== "" && document.querySelector(".skeleton") === null, word.slice(0, length), { polling: "raf", timeout: 60_000 });
  letters.push(Math.round(performance.now() - start));
}
await browser.close();
const medians = Object.fromEntries(Object.entries(pages).map(([name, values]) => [name, Math.round(median(values))]));
console.log(JSON.stringify({ pages: medians, letters }));
