// Does what people do on the pages of a running server that has the store of tests/web/shop.py.
// Usage: node flows.mjs URL; LUMOS_TOKEN is sent if it is set, ROLE is what the token may do (admin).
// Prints one line of JSON: the flows that ran, and the problems found.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url] = process.argv.slice(2);
const role = process.env.ROLE ?? "admin";
const lake = "lumos://s3/shop-lake";
const q = (values) => new URLSearchParams(values).toString();
const dataset = (path, tab) => `/dataset?${q({ urn: `${lake}/${path}`, ...(tab === undefined ? {} : { tab }) })}`;
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "lumos-flows-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  viewport: { width: 1440, height: 900 },
});
browser.setDefaultTimeout(30_000);
const token = process.env.LUMOS_TOKEN;
if (token) await browser.addInitScript((value) => sessionStorage.setItem("lumos.token", value), token);
const problems = [];
const expect = (what, met) => { if (!met) throw new Error(what); };

const FLOWS = {
  async "search with the keyboard, and save the search"(page) {
    await page.goto(`${url}/`);
    await page.getByText("Coverage").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("customer");
    await page.getByText("Results for “customer”").waitFor();
    await page.locator(".hit mark").first().waitFor();
    await page.getByRole("button", { name: "Save this search" }).click();
    await page.getByRole("button", { name: "Forget this search" }).waitFor();
    await page.locator(".facet button", { hasText: "checkout" }).click();
    await page.locator(".hit").nth(1).waitFor();
    expect("the filter by owner is in the address", page.url().includes("owner=checkout"));
    await page.keyboard.press("/");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Schema" }).waitFor();
  },
  async "open the problems of the last scan of a source"(page) {
    await page.goto(`${url}/`);
    await page.getByRole("link", { name: "1 problem" }).click();
    await page.getByText("the last four bytes are not PAR1").first().waitFor();
  },
  async "edit the formula of the value"(page) {
    await page.goto(`${url}/`);
    await page.getByRole("button", { name: "Edit the formula" }).click();
    const formula = page.getByLabel("Formula");
    await formula.fill("engineers * 1000");
    await page.getByText("$", { exact: false }).first().waitFor();
    await formula.fill("engineers *");
    await page.locator(".missing[role=alert]").waitFor();
    await page.getByRole("button", { name: "Reset" }).click();
    await page.locator(".missing[role=alert]").waitFor({ state: "detached" });
  },
  async "open every tab of a dataset"(page) {
    await page.goto(`${url}${dataset("raw/user_clicks")}`);
    await page.getByLabel("Filter columns").fill("width");
    await page.locator("code", { hasText: "width" }).first().waitFor();
    for (const tab of ["History", "Usage", "Cost", "Files and drift", "Annotations"]) {
      await page.getByRole("tab", { name: tab }).click();
      await page.locator(".panel").first().waitFor();
      await page.waitForFunction(() => document.querySelector(".skeleton") === null);
    }
    await page.goto(`${url}${dataset("raw/user_clicks", "files")}`);
    await page.getByText("3 days missing").waitFor();
    await page.getByRole("button", { name: "Bytes" }).click();
    await page.locator(".heat-map[aria-label^=bytes]").waitFor();
    await page.goto(`${url}${dataset("raw/orders", "annotations")}`);
    await page.getByText("checkout (technical owner)").waitFor();
    await page.goto(`${url}${dataset("raw/orders", "profile")}`);
    await page.getByText("Most frequent").waitFor();
    await page.goto(`${url}${dataset("raw/orders", "history")}`);
    await page.getByLabel("Older version").selectOption("1.0.0");
    await page.getByText("order_id").first().waitFor();
  },
  async "edit a description, tags and owners, and notice a conflict"(page) {
    await page.goto(`${url}${dataset("raw/ad_spend")}`);
    await page.getByRole("tab", { name: "Schema" }).waitFor();
    const edit = page.getByRole("button", { name: /^(Add one|Edit)$/ });
    if (role === "read") {
      for (const name of ["Add one", "Edit", "Add tag", "Add owner"]) expect(`a reader has no button ${name}`, await page.getByRole("button", { name, exact: true }).count() === 0);
      return;
    }
    await edit.click();
    await page.getByLabel("Description").fill("What campaigns cost. <script>alert(1)</script>");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Description").waitFor({ state: "detached" });
    await page.getByText("What campaigns cost. <script>").waitFor();
    await page.getByRole("button", { name: "Add tag" }).click();
    await page.getByLabel("New tag").fill("🦊");
    await page.keyboard.press("Enter");
    await page.locator(".tag", { hasText: "🦊" }).waitFor();
    await page.getByRole("button", { name: "Add owner" }).click();
    await page.getByLabel("New owner").fill("finance");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.locator(".tag", { hasText: "finance" }).waitFor();
    const other = await browser.newPage();
    await other.goto(page.url());
    await other.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByLabel("Description").fill("First.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Description").waitFor({ state: "detached" });
    await other.getByLabel("Description").fill("Second.");
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByRole("button", { name: /Read it again/ }).click();
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByLabel("Description").waitFor({ state: "detached" });
    await other.close();
  },
  async "edit a column, and notice a conflict"(page) {
    await page.goto(`${url}${dataset("raw/user_clicks")}`);
    await page.locator(".tree tbody tr").first().waitFor();
    const open = (on) => on.getByRole("button", { name: "Edit properties.page_url", exact: true });
    if (role === "read") {
      expect("a reader cannot edit columns", await open(page).count() === 0);
      return;
    }
    const other = await browser.newPage();
    await other.goto(page.url());
    await open(other).click();
    await other.getByRole("button", { name: "Add one", exact: true }).last().click();
    await open(page).click();
    await page.getByRole("button", { name: "Add one", exact: true }).last().click();
    await page.getByLabel("Description of properties.page_url").fill("Where the click was. <b>");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".tree bdi", { hasText: "Where the click was. <b>" }).first().waitFor();
    await page.locator(".editor").getByRole("button", { name: "Add tag" }).click();
    await page.getByLabel("New tag of properties.page_url").fill("web");
    await page.keyboard.press("Enter");
    await page.locator(".field .tag", { hasText: "web" }).waitFor();
    await other.getByLabel("Description of properties.page_url").fill("Second.");
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByText("Somebody else has changed this dataset").waitFor();
    await other.getByRole("button", { name: /Read it again/ }).click();
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByLabel("Description of properties.page_url").waitFor({ state: "detached" });
    await other.close();
    await page.locator(".editor").getByRole("button", { name: "Remove web" }).click();
    await page.getByText("Somebody else has changed this dataset").waitFor();
    await page.getByRole("button", { name: /Read it again/ }).click();
    await page.locator(".tree bdi", { hasText: "Second." }).first().waitFor();
    await page.locator(".editor").getByRole("button", { name: "Remove web" }).click();
    await page.locator(".field .tag", { hasText: "web" }).waitFor({ state: "detached" });
  },
  async "follow a column, hide and show hops, read an edge, and export"(page) {
    await page.goto(`${url}/lineage?${q({ urn: `${lake}/raw/orders` })}`);
    await page.locator(".react-flow__node").first().waitFor();
    const before = await page.locator(".react-flow__node").count();
    await page.getByRole("button", { name: /^Hide what is downstream of orders_eur/ }).click();
    await page.waitForFunction((count) => document.querySelectorAll(".react-flow__node").length < count, before);
    await page.getByRole("button", { name: /^Show .* downstream of orders_eur/ }).click();
    await page.waitForFunction((count) => document.querySelectorAll(".react-flow__node").length === count, before);
    await page.locator(".node.focus li button", { hasText: "discount" }).click();
    await page.getByText("Following").waitFor();
    await page.locator(".react-flow__edge.on").first().waitFor();
    await page.locator(".react-flow__edge.on .react-flow__edge-interaction").first().click({ force: true });
    await page.getByLabel("Edge", { exact: true }).getByText(/models\/\w+\.sql:\d+/).first().waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    for (const kind of ["SVG", "PNG"]) {
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: kind }).click()]);
      expect(`a file of ${kind}`, file.suggestedFilename().endsWith(kind.toLowerCase()));
    }
    await page.getByLabel("Find in the graph").fill("roi");
    await page.getByRole("button", { name: /marketing_roi/ }).first().waitFor();
  },
  async "ask what breaks and what is saved"(page) {
    await page.goto(`${url}/what-if`);
    await page.getByLabel("Choose a dataset to change").fill("orders");
    await page.getByRole("button", { name: "orders", exact: true }).click();
    await page.getByRole("button", { name: "Drop amount" }).click();
    await page.getByText(/4 break/).waitFor();
    await page.getByText("Who is affected").waitFor();
    expect("the question is in the address", page.url().includes("amount"));
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByRole("button", { name: "Rename currency" }).click();
    await page.getByLabel("New name of currency").fill("code");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.locator(".now", { hasText: "code" }).waitFor();
    await page.getByText(/^Renaming currency/).waitFor();
    await page.getByRole("button", { name: "Change the type of order_id" }).click();
    await page.getByLabel("New type of order_id").fill("STRING");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.locator(".now", { hasText: "STRING" }).waitFor();
    await page.reload();
    await page.locator(".now", { hasText: "code" }).waitFor();
    await page.getByRole("button", { name: "Drop items[].sku" }).click();
    await page.locator(".was", { hasText: "sku" }).waitFor();
    expect("the nested field is in the address", decodeURIComponent(page.url()).includes("items[].sku"));
    await page.getByLabel("Choose a dataset to switch off").fill("legacy");
    await page.getByRole("button", { name: "legacy_funnel" }).click();
    await page.getByText(/^Saves/).waitFor();
  },
  async "group costs"(page) {
    await page.goto(`${url}/cost`);
    for (const group of ["Domain", "Platform", "Tag", "Team"]) {
      await page.getByRole("button", { name: group, exact: true }).click();
      await page.getByRole("columnheader", { name: group }).waitFor();
      await page.getByText(`From ${group.toLowerCase()}s to types of cost`).waitFor();
      await page.locator(".legend", { hasText: { Domain: "sales", Platform: "s3", Tag: "gold", Team: "finance" }[group] }).waitFor();
    }
  },
  async "read jobs and results of the gate, and pause a schedule"(page) {
    await page.goto(`${url}/operations`);
    await page.getByRole("link", { name: "4", exact: true }).click();
    await page.getByText("access denied").first().waitFor();
    await page.getByLabel("Log").getByText("Step 1: ingest").waitFor();
    expect(`Retry is ${role === "read" ? "hidden" : "shown"}`, (await page.getByRole("button", { name: "Retry" }).count() === 0) === (role === "read"));
    await page.getByRole("tab", { name: "Schedules" }).click();
    await page.getByText("nightly").waitFor();
    if (role === "read") expect("a reader cannot pause", await page.getByRole("button", { name: "Pause" }).count() === 0);
    else {
      await page.getByRole("button", { name: "Pause" }).first().click();
      await page.getByRole("button", { name: "Resume" }).first().click();
      await page.getByRole("button", { name: "Resume" }).waitFor({ state: "detached" });
    }
    await page.getByRole("tab", { name: "Gate" }).click();
    await page.getByRole("link", { name: "#318" }).click();
    await page.getByText("approved by").waitFor();
    expect(`the audit log is ${role === "admin" ? "shown" : "hidden"}`, (await page.getByRole("tab", { name: "Audit" }).count() === 1) === (role === "admin"));
  },
};

for (const [name, run] of Object.entries(FLOWS)) {
  const page = await browser.newPage();
  page.on("console", (message) => {
    // Browsers report every refused edit; the page shows it.
    if (message.type() === "error" && !message.text().includes("412")) problems.push(`${name}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`${name}: ${error.message}`));
  page.on("dialog", (dialog) => { problems.push(`${name}: a dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("response", (response) => { if (response.status() >= 500) problems.push(`${name}: ${response.status()} ${response.url()}`); });
  try {
    await run(page);
  } catch (error) {
    problems.push(`${name}: ${error.message.split("\n").slice(0, 3).join(" ")}`);
    if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${name.slice(0, 20)}.png`) });
  }
  await page.close();
}
await browser.close();
console.log(JSON.stringify({ pages: Object.keys(FLOWS).length, problems }));
