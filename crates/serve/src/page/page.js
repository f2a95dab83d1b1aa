
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

function question() {
  if (chosen() === "text") return { text: $("text").value };
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

async function search() {
  if ($("token").value) token = $("token").value.trim();
  const asked = question();
  for (const id of ["found", "about", "more"]) show(id);
  $("matches").hidden = $("comparison").hidden = true;
  const answer = await post("query", asked);
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
  const listed = answer.matches.slice(0, LISTED);
  $("matches").tBodies[0].replaceChildren(...listed.map((match, i) => row(asked, listed, match, i)));
  $("matches").hidden = n === 0;
  show("more", listed.length < n ? `${counted(n - listed.length, "more match", "more matches")} not listed.` : undefined);
  $("found").focus();
}

function row(asked, listed, match, i) {
  // The roles stay when a narrow screen shows rows as blocks.
  const tr = element("tr", undefined, { role: "row" });
  const id = element("td", legible(match.id), { class: "id", role: "cell" });
  if (match.exact) id.append(element("small", "same text"));
  const decision = element("td", undefined, { "data-name": "Decision", role: "cell" });
  const words = element("span", match.decision === "keep" ? "kept" : "dropped");
  if (match.canonical_id !== null) words.append(element("small", "represented by " + legible(match.canonical_id)));
  decision.append(words);
  const number = (name, value) => element("td", value ?? "–", { class: "number", "data-name": name, role: "cell" });
  tr.append(id, element("td", match.dt, { class: "night", "data-name": "Night", role: "cell" }), number("Distance", match.distance));
  tr.append(number("Sketch distance", match.sketch_distance), decision, comparison(asked, listed, match, i));
  return tr;
}

// A text is compared with the match, and the first match of a fingerprint with the others.
function comparison(asked, listed, match, i) {
  const cell = element("td", undefined, { role: "cell" });
  const isFirst = asked.text === undefined && i === 0;
  if (!hasTexts || isFirst) return cell;
  const first = asked.text !== undefined
    ? { name: "your text", side: { text: asked.text } }
    : { name: legible(listed[0].id), side: { id: listed[0].id, dt: listed[0].dt } };
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
  const verdict = pair.is_pair ? "A run takes these texts for near-duplicates" : "A run does not take these texts for near-duplicates";
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
  input.addEventListener("change", () => {
    $("of-text").hidden = chosen() !== "text";
    $("of-fingerprint").hidden = chosen() !== "fingerprint";
  });
}
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  busy($("search"), search);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});
health();
