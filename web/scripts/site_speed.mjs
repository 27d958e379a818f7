// Measures how fast a static site opens in Chromium, from a folder or a web server.
// Usage: node site_speed.mjs ADDRESS NAME URN, where NAME and URN are of one dataset of the site.
// Prints the seconds until each page is readable, each time in a new browser profile, the median of
// three: an empty page, home, the list of all datasets, a search for NAME, and the page of the dataset.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [address, name, urn] = process.argv.slice(2);
const q = (values) => new URLSearchParams(values).toString();
const empty = join(mkdtempSync(join(tmpdir(), "lumos-empty-")), "index.html");
writeFileSync(empty, "<!doctype html><title>Empty</title><p>Empty page</p>");

async function measure(url, text) {
  const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "lumos-speed-")), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await browser.newPage();
    const start = performance.now();
    await page.goto(url);
    await page.getByText(text).first().waitFor({ timeout: 60_000 });
    return (performance.now() - start) / 1000;
  } finally {
    await browser.close();
  }
}

const PAGES = {
  empty: [`file://${empty}`, "Empty page"],
  home: [`${address}/index.html`, "Coverage"],
  all: [`${address}/index.html#/search`, "All datasets"],
  search: [`${address}/index.html#/search?${q({ q: name })}`, "1 dataset"],
  dataset: [`${address}/index.html#/dataset?${q({ urn })}`, "columns"],
};
const seconds = {};
for (const [page, [url, text]] of Object.entries(PAGES)) {
  const runs = [];
  for (let run = 0; run < 3; run += 1) runs.push(await measure(url, text));
  seconds[page] = Number(runs.sort((one, two) => one - two)[1].toFixed(2));
}
console.log(JSON.stringify(seconds));
