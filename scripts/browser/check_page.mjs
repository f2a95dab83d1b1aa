// Checks a page of `nearprint report --html` in Chromium, at phone and desktop width, light and dark.
//
// usage: node check_page.mjs PAGE.html [--shots FOLDER] [--payloads FILE]
//
// It fails if the page runs a script, asks for anything but itself, breaks its own policy, is wider than the screen, or if
// axe-core finds a serious or critical defect. --payloads names the payloads that the page's night was made of: each calls
// hit(). The script first shows that they do run in a page that does not escape them. CHROMIUM names the browser.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { shots: { type: "string" }, payloads: { type: "string" } },
});
const address = pathToFileURL(resolve(positionals[0])).href;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } };
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Opens a page that counts calls of hit(), and lets a user touch everything in it. */
async function touched(browser, open, settings = {}) {
  const page = await browser.newPage(settings);
  const seen = { requests: [], complaints: [], page };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  await page.addInitScript(() => { window.hits = 0; window.hit = () => { window.hits += 1; }; });
  await open(page);
  await page.evaluate(() => document.querySelectorAll("summary").forEach((summary) => summary.click()));
  for (let i = 0; i < 60; i += 1) await page.keyboard.press("Tab");
  await page.waitForTimeout(300);
  seen.hits = await page.evaluate(() => window.hits);
  return seen;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
const failures = [];
const must = (holds, what) => holds || failures.push(what);

if (options.payloads) {
  const payloads = readFileSync(options.payloads, "utf8").split("\n").filter(Boolean);
  let n = 0;
  for (const payload of payloads) {
    const open = async (page) => {
      await page.goto("about:blank");
      await page.setContent(`<p>${payload}</p><p title="${payload}"></p><p title='${payload}'></p>`, { timeout: 2000 });
    };
    const control = await touched(browser, open).catch(() => ({ hits: 0 }));
    n += control.hits > 0;
    await control.page?.close();
  }
  console.log(`unescaped, ${n} of ${payloads.length} payloads run`);
  must(n > payloads.length / 3, "the payloads do nothing even where they could: the check shows nothing");
}

for (const [name, viewport] of Object.entries(WIDTHS)) {
  for (const colorScheme of ["light", "dark"]) {
    const where = `${name}, ${colorScheme}`;
    const seen = await touched(browser, (page) => page.goto(address), { viewport, colorScheme });
    const { page } = seen;
    must(seen.hits === 0, `${where}: ${seen.hits} payloads ran`);
    must(seen.requests.every((url) => url === address), `${where}: asks for ${seen.requests.filter((url) => url !== address)}`);
    must(seen.complaints.length === 0, `${where}: ${seen.complaints}`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    must(width <= viewport.width, `${where}: ${width} pixels wide`);
    const styled = await page.evaluate(() => getComputedStyle(document.body).maxWidth !== "none");
    must(styled, `${where}: the page's style is not applied`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    for (const { id, impact, nodes } of violations) {
      console.log(`${where}: ${impact} ${id}, ${nodes.length} times, first ${nodes[0].html.slice(0, 120)}`);
    }
    must(serious.length === 0, `${where}: serious ${serious.map(({ id }) => id)}`);
    console.log(`${where}: ${seen.hits} scripts run, ${seen.requests.length - 1} requests, axe ${serious.length} serious of ${violations.length}`);
    if (options.shots) {
      mkdirSync(options.shots, { recursive: true });
      await page.evaluate(() => { document.querySelectorAll("details").forEach((d) => { d.open = false; }); document.activeElement?.blur(); scrollTo({ top: 0, behavior: "instant" }); });
      await page.screenshot({ path: join(options.shots, `${name}-${colorScheme}.png`) });
      await page.screenshot({ path: join(options.shots, `${name}-${colorScheme}-whole.png`), fullPage: true });
    }
    await page.close();
  }
}
await browser.close();
failures.forEach((failure) => console.error(`failed: ${failure}`));
process.exit(failures.length ? 1 : 0);
