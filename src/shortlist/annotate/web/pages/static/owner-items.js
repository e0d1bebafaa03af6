// Items and answers: a table that filters, and one item with its whole history, to be corrected or commented on.
import { ApiError, call, failure } from "./api.js";
import { ask } from "./ask.js";
import { at, element } from "./dom.js";
import { count, percent, seconds } from "./figures.js";

const PAGE = 50;
const NO_CLASS = "none";
const TRIES = 60; // requests for one page where few items match; each looks at 20,000: all of a million
const REASONS = { unclear: "unclear", broken: "broken", unlisted: "not in the list", mine: "not for them" };
let classes = [];
let names = new Map();
let shown = [];
let after = 0;
let asked = 0;
let looked = 0;
let open = null;
let acting = false;

export async function start({ trying }) {
  let typing = 0;
  at("filters").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => trying(() => find(true)), event.target.type === "search" ? 250 : 0);
  });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("more").addEventListener("click", () => trying(() => find(false)));
  at("items").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    const marking = !getSelection().isCollapsed && !event.target.closest("button"); // somebody copies a text
    if (row && !marking) trying(() => look(Number(row.dataset.item)));
  });
  at("item-close").addEventListener("click", () => at("item").close());
  at("item").addEventListener("close", () => trying(() => renew(open.id)));
  at("correct").addEventListener("submit", (event) => {
    event.preventDefault();
    const answer = at("correct-class").value === NO_CLASS ? null : Number(at("correct-class").value);
    act("correction", { answer, seen: open.version, why: at("correct-why").value });
  });
  at("correct-undo").addEventListener("click", () => act("undo", { seen: open.version, why: at("correct-why").value }));
  at("flags-close").addEventListener("click", () => act("flags/close", {}));
  at("item-erase").addEventListener("click", async () => {
    const words = "The item and everything that was said about it are gone for good.";
    if (await ask({ title: `Erase ${open.name}?`, words, go: "Erase", danger: true })) erase();
  });
  at("comment").addEventListener("submit", (event) => {
    event.preventDefault();
    act("notes", { kind: "comment", text: at("comment-text").value }).then((done) => done && (at("comment-text").value = ""));
  });
  at("item-before").addEventListener("click", () => step(-1, trying));
  at("item-after").addEventListener("click", () => step(+1, trying));
  return async ({ annotators }, entered) => {
    if (!entered) return;
    await offer(annotators);
    wish();
    await find(true);
  };
}

// The classes and people to choose from; what was chosen stays.
async function offer(annotators) {
  const all = await call("GET", "/review/classes");
  classes = all.filter((one) => one.ended_at === null);
  names = new Map(classes.map((one) => [one.id, one.name]));
  const options = (some) => some.map((one) => element("option", { value: one.id }, one.name));
  fill("filter-class", "Any class", options(classes));
  fill("filter-person", "Anybody", options(annotators));
  fill("correct-class", "Choose a class", [element("option", { value: NO_CLASS }, "None of the classes"), ...options(classes)]);
}

function fill(id, nothing, options) {
  const chosen = at(id).value;
  at(id).replaceChildren(element("option", { value: "" }, nothing), ...options);
  at(id).value = [...at(id).options].some((one) => one.value === chosen) ? chosen : "";
}

// The overview links to #items?flagged.
function wish() {
  const [tab, wanted] = location.hash.split("?");
  if (tab !== "#items" || !wanted) return;
  at("filters").reset();
  const box = at("filters").querySelector(`[value="${CSS.escape(wanted)}"]`);
  if (box) box.checked = true;
}

function query() {
  const wanted = new URLSearchParams({ limit: PAGE, after });
  for (const box of at("filters").querySelectorAll(":checked[type=checkbox]")) wanted.set(box.value, "true");
  if (at("filter-words").value) wanted.set("words", at("filter-words").value);
  if (at("filter-class").value) wanted.set("class_id", at("filter-class").value);
  if (at("filter-person").value) wanted.set("person", at("filter-person").value);
  if (at("filter-seconds").value) wanted.set(...at("filter-seconds").value.split("="));
  return wanted;
}

async function find(anew) {
  const mine = ++asked;
  if (anew) {
    shown = [];
    after = 0;
    at("items").replaceChildren();
  }
  let added = 0;
  for (let tries = 0; tries < TRIES && after !== null && added < PAGE; tries += 1) {
    at("items-found").textContent = "Looking …";
    const page = await call("GET", `/review/items?${query()}`);
    if (mine !== asked) return; // somebody has chosen otherwise since
    after = page.after;
    added += page.items.length;
    shown.push(...page.items.map((item) => item.id));
    at("items").append(...page.items.map(row));
  }
  at("more").hidden = after === null;
  at("items-found").textContent = shown.length || after !== null ? `${count(shown.length)} shown${after === null ? "" : ", there may be more"}` : "No such items.";
}

const name = (k) => (k === null ? "None" : names.get(k) ?? `class ${k}`);
const badge = (text, kind = "") => element("span", { class: `badge ${kind}` }, text);

function answersOf(item) {
  const votes = new Map();
  for (const one of item.answers) votes.set(one.answer, (votes.get(one.answer) ?? 0) + 1);
  const ordered = [...votes].sort((one, other) => other[1] - one[1]);
  return ordered.flatMap(([k, n]) => [badge(n > 1 ? `${name(k)} × ${n}` : name(k), k === null ? "" : "accent"), " "]);
}

function states(item) {
  const given = new Set(item.answers.map((one) => one.answer).filter((k) => k !== null));
  const refused = item.answers.some((one) => one.answer === null && one.shortlist.some((k) => given.has(k)));
  const found = [];
  if (item.corrected) found.push(badge(`Corrected: ${item.known === -1 ? "no class" : name(item.gold ?? item.known)}`, "good"));
  else if (item.gold !== null) found.push(badge(`Gold: ${name(item.gold)}`));
  else if (item.known !== null) found.push(badge(`Known: ${name(item.known)}`));
  if (item.flags) found.push(badge(item.flags > 1 ? `${item.flags} flags` : "Flagged", "bad"));
  if (given.size > 1 || refused) found.push(badge("Disagreement", "warn"));
  if (item.believed) found.push(badge(`Model: ${item.believed}`, "warn"));
  if (item.skips?.length) found.push(badge(item.skips.at(-1) ? `Skipped: ${REASONS[item.skips.at(-1)] ?? item.skips.at(-1)}` : "Skipped"));
  if (!found.length && item.state !== "done") found.push(badge(item.answers.length ? item.state : "no answer yet"));
  return found.flatMap((one) => [one, " "]);
}

function row(item) {
  const times = item.answers.map((one) => one.seconds).filter((one) => one !== null);
  const label = element("button", { type: "button", class: "quiet open" }, element("span", { class: "name", dir: "auto" }, item.name));
  if (item.kind === "image") label.prepend(element("img", { src: `/api/v1/items/${item.id}/media`, alt: "", loading: "lazy", class: "thumb" }));
  const head = element("th", { scope: "row" }, ...(item.text ? [element("p", { class: "excerpt", dir: "auto" }, item.text)] : []), label);
  return element("tr", { id: `item-${item.id}`, "data-item": item.id }, head, element("td", { class: "wrap" }, ...answersOf(item)), element("td", { class: "number" }, times.length ? `${seconds(Math.max(...times))} s` : ""), element("td", { class: "wrap" }, ...states(item)));
}

async function renew(id) {
  const old = at(`item-${id}`);
  const page = old && (await call("GET", `/review/items?after=${id - 1}&limit=1`));
  if (page?.items[0]?.id === id) {
    const focused = old.contains(document.activeElement);
    const made = row(page.items[0]);
    old.replaceWith(made);
    if (focused) made.querySelector("button").focus();
  }
}

async function look(id) {
  const mine = ++looked;
  const item = await call("GET", `/review/items/${id}`);
  if (mine !== looked) return; // somebody has opened another one since
  at("correct-why").value = "";
  show(item);
  if (!at("item").open) at("item").showModal();
  at("item-body").scrollTop = 0;
}

function show(item) {
  open = item;
  say(null);
  at("item-name").textContent = item.name;
  at("item-name").classList.toggle("soft", Boolean(item.text)); // of a text, the text is what one looks for
  at("item-doubt").hidden = !item.believed;
  const chance = item.chance < 0.001 ? "less than 0.1 %" : percent(item.chance);
  at("item-doubt").textContent = item.believed ? `A model that was not told this answer holds it for ${item.believed}; it gives the answer a chance of ${chance}.` : "";
  const source = `/api/v1/items/${item.id}/media`;
  const parts = [];
  if (item.kind === "image") parts.push(element("img", { src: source, alt: item.name, class: "shown" }));
  if (item.kind === "audio") parts.push(element("audio", { src: source, controls: "" }));
  if (item.text) parts.push(element("p", { class: "shown", dir: "auto" }, item.text));
  at("item-shown").replaceChildren(...parts);
  at("item-label").replaceChildren(...states({ ...item, flags: flags(item) }), ...answersOf(item));
  const most = item.gold ?? item.known ?? item.answers.find((one) => one.answer !== null)?.answer;
  at("correct-class").value = most === -1 ? NO_CLASS : String(most ?? ""); // nothing where nobody said anything: a slip would be a label
  at("correct-undo").hidden = !item.corrected;
  at("flags-close").hidden = !flags(item);
  at("history").replaceChildren(...item.events.map((one) => event(one, item)));
  at("item-before").disabled = shown.indexOf(item.id) <= 0;
  at("item-after").disabled = shown.indexOf(item.id) === shown.length - 1;
}

const flags = (item) => item.events.filter((one) => one.kind === "flag" && one.stands).length;

function event(one, item) {
  const called = (k) => (k === null ? "None" : item.names[k] ?? name(k));
  const what = { answer: `answered ${called(one.class_id)}`, typed: `typed ${called(one.class_id)}`, skip: "skipped it", undo: "took that back", comment: "commented", flag: "flagged it" };
  what.correction = `corrected it to ${one.class_id === null ? "no class" : called(one.class_id)}`;
  what["correction undone"] = "took the correction back";
  const when = new Date(1000 * one.at).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  const parts = [element("b", { dir: "auto" }, one.who), ` ${what[one.kind]}`];
  if (one.seconds !== null) parts.push(` after ${seconds(one.seconds)} s`);
  if (one.kind === "skip" && one.words) parts.push(`: ${REASONS[one.words] ?? one.words}`);
  else if (one.words) parts.push(": ", element("q", { dir: "auto" }, one.words));
  const lists = one.shortlist.length ? [element("p", { class: "soft" }, `Shown: ${one.shortlist.map((k) => called(k)).join(", ")}`)] : [];
  return element("li", { class: one.stands ? "" : "gone" }, element("p", {}, ...parts), element("p", { class: "soft" }, when), ...lists);
}

function say(text) {
  at("item-notice").textContent = text ?? "";
  at("item-notice").hidden = !text;
}

// Two reviewers may look at one item: the second is told what the first said, and sees it.
async function act(what, body) {
  if (acting) return false; // a second click would find that somebody was quicker: the first
  acting = true;
  try {
    show(await call("POST", `/review/items/${open.id}/${what}`, body));
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "corrected_meanwhile") show(await call("GET", `/review/items/${open.id}`));
    refused(error);
    return false;
  } finally {
    acting = false;
  }
}

// In the dialog: it covers the page's own notice.
const refused = (error) => say(failure(error, "nothing was changed"));

async function erase() {
  try {
    await call("DELETE", `/items/${open.id}`);
  } catch (error) {
    return refused(error);
  }
  at(`item-${open.id}`)?.remove();
  shown = shown.filter((id) => id !== open.id);
  at("item").close();
}

async function step(by, trying) {
  const before = open.id;
  const next = shown[shown.indexOf(before) + by];
  if (next === undefined) return;
  await trying(() => look(next));
  trying(() => renew(before));
}
