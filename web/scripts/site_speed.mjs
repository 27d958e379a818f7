// Measures how fast a static site opens in Chromium, from a folder or a web server.
// Usage: node site_speed.mjs ADDRESS NAME URN, where NAME and URN are of one dataset of the site.
// Prints the seconds until each page is readable in a new browser profile: an empty page, home, the
// list of all datasets, a search for NAME, and the page of the dataset.
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

const seconds = { empty: await measure(`file://${empty}`, "Empty page") };
seconds.home = await measure(`${address}/index.html`, "Coverage");
seconds.all = await measure(`${address}/index.html#/search`, "All datasets");
seconds.search = await measure(`${address}/index.html#/search?${q({ q: name })}`, "1 dataset");
seconds.dataset = await measure(`${address}/index.html#/dataset?${q({ urn })}`, "columns");
console.log(JSON.stringify(seconds));
