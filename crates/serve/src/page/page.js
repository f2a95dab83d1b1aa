
"use strict";
// Texts and ids of documents are shown by textContent alone, and never as HTML.
const $ = (id) => document.getElementById(id);
const LISTED = 100;
let token = "";
let hasTexts = false;

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

// Control characters, and marks that turn the direction of writing, would make an id look like another.
const legible = (text) =>
  text.replace(/[\t\n\r\u001f\u2028\u2029]/gu, " ").replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");

const counted = (n, what, many = what + "s") => `${n.toLocaleString("en")} ${n === 1 ? what : many}`;

const show = (id, text) => {
  $(id).textContent = text ?? "";
  $(id).hidden = text === undefined;
};

class Refused extends Error {}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  let response;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Refused("The server does not answer. Is it running?");
  }
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (response.status === 401) {
    const wrong = token !== "";
    token = "";
    askForToken();
    throw new Refused(wrong ? "This is not the server's token." : "This server needs its token.");
  }
  if (!response.ok) throw new Refused(answer.error);
  return answer;
}

function askForToken() {
  $("of-token").hidden = false;
  $("token").value = "";
  $("token").focus();
}

async function health() {
  try {
    const state = await (await fetch("healthz")).json();
    hasTexts = state.has_texts;
    if (state.needs_token && !token) $("of-token").hidden = false;
    const stale = state.status === "stale" ? " The newest commit cannot be read; answers are of an earlier one." : "";
    show("store", `${counted(state.n_live_rows, "document")} of ${counted(state.n_nights, "night")}, commit ${state.commit}.${stale}`);
  } catch {
    show("store", "The server does not answer.");
  }
}

const chosen = () => document.querySelector("input[name=kind]:checked").value;

// A link leads to nothing but a web page, and its address is all that is seen of it.
const isWebAddress = (id) => /^https?:\/\/[\p{L}\p{N}.-]+(:\d+)?([/?#][^\s<>"'`\\]*)?$/u.test(id) && legible(id) === id;

const KINDS = ["text", "address", "fingerprint"];

function choose(kind) {
  document.querySelector(`input[name=kind][value=${kind}]`).checked = true;
  for (const other of KINDS) $("of-" + other).hidden = other !== kind;
}

const ownAddress = (id) => "?id=" + encodeURIComponent(id);

// An id leads to the answer about its document, which has an address of its own.
function documentLink(id) {
  const link = element("a", legible(id) || '""', { href: ownAddress(id) });
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    askAbout(id);
  });
  return link;
}

// The field takes line ends out of an id that it shows.
let shownId = null;

function askAbout(id) {
  choose("address");
  $("address").value = id;
  shownId = id;
  busy($("search"), search);
}
$("address").addEventListener("input", () => {
  shownId = null;
});

function question() {
  if (chosen() === "text") return { text: $("text").value };
  if (chosen() === "address") return { document_id: shownId ?? $("address").value };
  const sketch = $("sketch").value.trim();
  const fingerprint = $("fingerprint").value.trim();
  return sketch ? { fingerprint, sketch } : { fingerprint };
}

async function busy(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  show("problem");
  try {
    await work();
  } catch (error) {
    show("problem", error instanceof Refused ? error.message : "The page failed: " + error);
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

function clear() {
  for (const id of ["found", "about", "more"]) show(id);
  $("matches").hidden = $("comparison").hidden = true;
}

async function search() {
  if ($("token").value) token = $("token").value.trim();
  clear();
  const asked = question();
  const answer = await post("query", asked);
  const id = new URLSearchParams(location.search).get("id");
  const asks = asked.document_id ?? null;
  if (id !== asks) history.pushState(null, "", asks === null ? location.pathname : ownAddress(asks));
  $("of-token").hidden = true;
  $("token").value = "";
  list(asked, answer);
  health();
}

function list(asked, answer) {
  const n = answer.n_matches;
  show("found", n === 0 ? "No match" : counted(n, "match", "matches"));
  const reasons = {
    empty: "Nothing is left of the text after normalisation.",
    too_short: "The text is too short for a fingerprint: only equal texts match.",
  };
  show("about", answer.fingerprint ? `Fingerprint ${answer.fingerprint}` : reasons[answer.reason]);
  if (answer.document) about(answer.document);
  const listed = answer.matches.slice(0, LISTED);
  $("matches").tBodies[0].replaceChildren(...listed.map((match, i) => row(asked, answer, match, i)));
  $("matches").hidden = n === 0;
  show("more", listed.length < n ? `${counted(n - listed.length, "more match", "more matches")} not listed.` : undefined);
  $("found").focus();
}

// The document that is the question: its newest night, and what was decided there.
function about(stored) {
  const decided = { keep: "kept", drop: "dropped", skip: "skipped: it has no text" };
  const said = [named(stored.id), `: ${decided[stored.decision]} on ${stored.dt}`];
  if (stored.canonical_id !== null) said.push(", represented by ", ...canonical(stored));
  $("about").prepend(...said, ". ");
}

// The document that represents one: another store may have an unrelated document with the same id.
function canonical({ canonical_id: id, reference }) {
  return reference === null ? [documentLink(id)] : [named(id), ` of reference ${legible(reference)}`];
}

// An id with the page that it names, if it names one.
function named(id) {
  const span = element("span", legible(id) || '""');
  if (!isWebAddress(id)) return span;
  span.append(" ", pageLink(id));
  return span;
}

const pageLink = (id) =>
  element("a", "open page", { href: id, rel: "noopener noreferrer nofollow", target: "_blank", "aria-label": "Open the page " + id });

function row(asked, answer, match, i) {
  // The roles stay when a narrow screen shows rows as blocks.
  const tr = element("tr", undefined, { role: "row" });
  const id = element("td", undefined, { class: "id", role: "cell" });
  id.append(documentLink(match.id));
  if (isWebAddress(match.id)) id.append(" ", pageLink(match.id));
  if (match.exact) id.append(element("small", "same text"));
  const decision = element("td", undefined, { "data-name": "Decision", role: "cell" });
  const words = element("span", match.decision === "keep" ? "kept" : "dropped");
  if (match.canonical_id !== null) {
    const by = element("small", "represented by ");
    by.append(...canonical(match));
    words.append(by);
  }
  decision.append(words);
  const number = (name, value) => element("td", value ?? "–", { class: "number", "data-name": name, role: "cell" });
  tr.append(id, element("td", match.dt, { class: "night", "data-name": "Night", role: "cell" }), number("Distance", match.distance));
  tr.append(number("Sketch distance", match.sketch_distance), decision, comparison(asked, answer, match, i));
  return tr;
}

// What was asked about is compared with the match, and the first match of a fingerprint with the others.
function comparison(asked, answer, match, i) {
  const cell = element("td", undefined, { role: "cell" });
  const isFirst = asked.fingerprint !== undefined && i === 0;
  if (!hasTexts || isFirst) return cell;
  const stored = answer.document ?? answer.matches[0];
  const first = asked.text !== undefined
    ? { name: "your text", side: { text: asked.text } }
    : { name: legible(stored.id), side: { id: stored.id, dt: stored.dt } };
  const button = element("button", "Compare", { type: "button", "aria-label": `Compare ${first.name} with ${legible(match.id)}` });
  button.addEventListener("click", () => busy(button, () => compare(first, match)));
  cell.append(button);
  return cell;
}

async function compare(first, match) {
  $("comparison").hidden = true;
  const explanation = await post("explain", { a: first.side, b: { id: match.id, dt: match.dt } });
  const pair = explanation.pair;
  show("compared", `Differences: ${first.name} and ${legible(match.id)}`);
  const takes = pair.is_pair_across_nights ? "takes" : "does not take";
  const within = pair.is_pair === pair.is_pair_across_nights ? "" : pair.is_pair ? ", but does within a night" : ", but not within a night";
  const verdict = `Across nights, a run ${takes} these texts for near-duplicates${within}`;
  show("verdict", `${verdict}: ${pair.reasons.join("; ")}.`);
  const same = element("p", "The normalised texts are equal.");
  $("diff").replaceChildren(...(pair.same_text ? [same] : pair.diff.map(segment)));
  $("comparison").hidden = false;
  $("compared").focus();
}

function segment(pieces) {
  const p = element("p");
  p.append("… ");
  for (const piece of pieces) {
    if (piece.removed !== undefined) p.append(element("del", legible(piece.removed)));
    else if (piece.added !== undefined) p.append(element("ins", legible(piece.added)));
    else p.append(legible(piece.same));
  }
  p.append(" …");
  return p;
}

for (const input of document.querySelectorAll("input[name=kind]")) {
  input.addEventListener("change", () => choose(chosen()));
}
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  busy($("search"), search);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});

// The address of the page names the document that it is about.
function askOfAddress() {
  const id = new URLSearchParams(location.search).get("id");
  if (id !== null) askAbout(id);
  return id !== null;
}
window.addEventListener("popstate", () => {
  if (askOfAddress()) return;
  clear();
  show("problem");
  choose("text");
  $("address").value = "";
  shownId = null;
});
health().then(askOfAddress);
