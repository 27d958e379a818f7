// Visits every page of a running server in Chromium, in both themes and three widths.
// Usage: node screenshots.mjs URL FOLDER [WIDTH,WIDTH] [THEME,THEME] [PAGE,PAGE]
// Prints one line of JSON: the problems found. Screenshots go to FOLDER, if it is not "-".
// With SITE=1, URL is the folder of a static site: its addresses are behind a #.
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { NEED_A_SERVER, PAGES } from "./pages.mjs";

const [url, folder, widths = "1440,1024,390", themes = "light,dark", pages = ""] = process.argv.slice(2);
const isSite = process.env.SITE === "1";
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
      const [path, onServer] = PAGES[name];
      // A site has no jobs, the first tab of operations.
      const text = isSite && name === "operations" ? "Releases" : onServer;
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
