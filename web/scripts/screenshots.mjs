// Visits every page of a running server in Chromium, in both themes and three widths.
// Usage: node screenshots.mjs URL FOLDER [WIDTH,WIDTH] [THEME,THEME] [PAGE,PAGE]
// Prints one line of JSON: the problems found. Screenshots go to FOLDER, if it is not "-".
// With SITE=1, URL is the folder of a static site: its addresses are behind a #.
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, folder, widths = "1440,1024,390", themes = "light,dark", pages = ""] = process.argv.slice(2);
const isSite = process.env.SITE === "1";
const lake = "lumos://s3/shop-lake";
const q = (values) => new URLSearchParams(values).toString();
const list = (value) => JSON.stringify(value);
const PAGES = {
  home: ["/", "Breaking changes this week"],
  search: [`/search?${q({ q: "customer" })}`, "Results for"],
  all: ["/search", "All datasets"],
  schema: [`/dataset?${q({ urn: `${lake}/raw/user_clicks` })}`, "columns"],
  history: [`/dataset?${q({ urn: `${lake}/raw/orders`, tab: "history" })}`, "Compare versions"],
  profile: [`/dataset?${q({ urn: `${lake}/raw/orders`, tab: "profile" })}`, "Most frequent"],
  usage: [`/dataset?${q({ urn: `${lake}/marts/revenue`, tab: "usage" })}`, "Reads per day"],
  datasetcost: [`/dataset?${q({ urn: `${lake}/ml/recommendations`, tab: "cost" })}`, "Where it comes from"],
  files: [`/dataset?${q({ urn: `${lake}/raw/user_clicks`, tab: "files" })}`, "3 days missing"],
  annotations: [`/dataset?${q({ urn: `${lake}/raw/customers`, tab: "annotations" })}`, "Who said what"],
  lineage: [`/lineage?${q({ urn: `${lake}/raw/orders`, column: "discount" })}`, "Following"],
  whatif: [`/what-if?${q({ urn: `${lake}/raw/orders`, drop: list(["amount"]) })}`, "Verdict"],
  switchoff: [`/what-if?${q({ off: list([`${lake}/marts/legacy_funnel`]) })}`, "Saves"],
  cost: ["/cost", "Where the money goes"],
  operations: ["/operations", isSite ? "Releases" : "Jobs"],
  job: ["/operations?job=4", "access denied"],
  schedules: ["/operations?tab=schedules", "nightly"],
  releases: ["/operations?tab=releases", "2026.11"],
  catalogs: ["/operations?tab=catalogs", "1 catalog in sync"],
  gate: ["/operations?tab=gate", "1 change approved"],
  audit: ["/operations?tab=audit", "Audit log"],
};
const NEED_A_SERVER = ["whatif", "switchoff", "job", "schedules", "audit"];

if (folder !== "-") mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "lumos-page-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  bypassCSP: false,
});
const problems = [];
const token = process.env.LUMOS_TOKEN;
if (token) await browser.addInitScript((value) => sessionStorage.setItem("lumos.token", value), token);
const wanted = (pages === "" ? Object.keys(PAGES) : pages.split(",")).filter((name) => !isSite || !NEED_A_SERVER.includes(name));
const addressOf = (path) => isSite ? `${url}/index.html#${path}` : url + path;
for (const width of widths.split(",").map(Number)) {
  for (const theme of themes.split(",")) {
    for (const name of wanted) {
      const [path, text] = PAGES[name];
      const page = await browser.newPage();
      const where = `${name} at ${width} ${theme}`;
      page.on("console", (message) => { if (message.type() === "error") problems.push(`${where}: console: ${message.text()}`); });
      page.on("pageerror", (error) => problems.push(`${where}: ${error.message}`));
      page.on("dialog", (dialog) => { problems.push(`${where}: a dialog: ${dialog.message()}`); void dialog.dismiss(); });
      page.on("response", (response) => { if (response.status() >= 400) problems.push(`${where}: ${response.status()} ${response.url()}`); });
      page.on("request", (request) => { if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) problems.push(`${where}: other host ${request.url()}`); });
      await page.setViewportSize({ width, height: width < 700 ? 844 : 900 });
      await page.addInitScript((value) => localStorage.setItem("lumos.theme", value), theme);
      try {
        await page.goto(addressOf(path), { timeout: 40_000 });
        await page.getByText(text).first().waitFor({ timeout: 40_000 });
        await page.waitForFunction(() => document.querySelector(".skeleton") === null, undefined, { timeout: 40_000 });
        if (["lineage", "whatif"].includes(name)) await page.locator(".react-flow__node").first().waitFor({ timeout: 40_000 });
        await page.waitForTimeout(250);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (overflow > 1) problems.push(`${where}: ${overflow} px wider than the window`);
        if (process.env.AXE === "1") {
          await page.evaluate(axe);
          const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations.filter((each) => ["serious", "critical"].includes(each.impact)).map((each) => `${each.id}: ${each.nodes[0].target.join(" ")} ${each.nodes[0].failureSummary}`));
          for (const each of found) problems.push(`${where}: axe ${each}`);
        }
      } catch (error) {
        problems.push(`${where}: ${error.message.split("\n")[0]}`);
      }
      if (folder !== "-") await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`), fullPage: width >= 700 && name !== "all" && process.env.WINDOW_ONLY !== "1" });
      await page.close();
    }
  }
}
await browser.close();
console.log(JSON.stringify({ pages: wanted.length, problems }));
