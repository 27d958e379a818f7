// Answers requests from the files of a static site, as the page does in a browser.
// Usage: node site_answers.mjs FOLDER < REQUESTS, a JSON list of addresses such as "/api/v1/overview".
// Prints a JSON list of [status, body].
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";

// The sources import each other without an extension, which only bundlers resolve.
registerHooks({
  resolve: (specifier, context, next) => next(/^\.\.?\//.test(specifier) && !/\.\w+$/.test(specifier) ? `${specifier}.ts` : specifier, context),
});
const { answerer } = await import("../src/site/answers.ts");

const folder = process.argv[2];
const data = /name="lumos-data" content="([^"]+)"/.exec(readFileSync(join(folder, "index.html"), "utf8"))[1];
const load = async (name) => {
  let value;
  new Function("lumosData", readFileSync(join(folder, data, `${name}.js`), "utf8"))((_, text) => { value = JSON.parse(text); });
  return value;
};
const answer = answerer(load);
const answers = [];
for (const path of JSON.parse(readFileSync(0, "utf8"))) {
  const response = await answer(new Request(`http://site.invalid${path}`));
  answers.push([response.status, await response.json()]);
}
console.log(JSON.stringify(answers));
