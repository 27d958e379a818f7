/** Every page, with a text that it shows once its data is there; the data is that of tests/web/shop.py. */
const lake = "lumos://s3/shop-lake";
const q = (values) => new URLSearchParams(values).toString();
const list = (value) => JSON.stringify(value);

export const PAGES = {
  home: ["/", "Breaking changes this week"],
  search: [`/search?${q({ q: "customer" })}`, "Results for"],
  all: ["/search", "All datasets"],
  schema: [`/dataset?${q({ urn: `${lake}/raw/user_clicks` })}`, "columns"],
  history: [`/dataset?${q({ urn: `${lake}/raw/orders`, tab: "history" })}`, "Compare versions"],
  profile: [`/dataset?${q({ urn: `${lake}/raw/orders`, tab: "profile" })}`, "Most frequent"],
  usage: [`/dataset?${q({ urn: `${lake}/marts/revenue`, tab: "usage" })}`, "Reads per day"],
  datasetcost: [`/dataset?${q({ urn: `${lake}/ml/recommendations`, tab: "cost" })}`, "Where it comes from"],
  files: [`/dataset?${q({ urn: `${lake}/raw/user_clicks`, tab: "files" })}`, "3 days missing"],
  annotations: [`/dataset?${q({ urn: `${lake}/raw/customers`, tab: "annotations" })}`, "Annotations and their sources"],
  lineage: [`/lineage?${q({ urn: `${lake}/raw/orders`, column: "discount" })}`, "Following"],
  whatif: [`/what-if?${q({ urn: `${lake}/raw/orders`, drop: list(["amount"]) })}`, "Verdict"],
  switchoff: [`/what-if?${q({ off: list([`${lake}/marts/legacy_funnel`]) })}`, "Saves"],
  cost: ["/cost", "Where the money goes"],
  operations: ["/operations", "Jobs"],
  job: ["/operations?job=4", "access denied"],
  schedules: ["/operations?tab=schedules", "nightly"],
  releases: ["/operations?tab=releases", "2026.11"],
  catalogs: ["/operations?tab=catalogs", "Conflicts with datahub"],
  gate: ["/operations?tab=gate", "1 change approved"],
  audit: ["/operations?tab=audit", "Audit log"],
};
export const NEED_A_SERVER = ["whatif", "switchoff", "job", "schedules", "audit"];
