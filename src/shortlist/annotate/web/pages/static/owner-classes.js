// Classes: how often each was picked and how well people agree on it; rename, describe, add, merge, retire.
import { call, failure } from "./api.js";
import { ask } from "./ask.js";
import { at, breakable, element } from "./dom.js";
import { count, counted, percent } from "./figures.js";
import { bar } from "./parts.js";

const SLOW_MS = 20_000;
const MOST_CONFUSED = 20;
const COLUMNS = [["Class", "name"], ["Answers", "answers"], ["Share", "answers"], ["Alpha", "alpha"], ["Gold", "gold"], ["Known", "known"]];
let [rows, none, looked, by, down] = [[], 0, 0, "answers", true];

export async function start() {
  at("class-head").append(...COLUMNS.map(([title, key]) => {
    const button = element("button", { type: "button", class: "quiet small" }, title);
    button.addEventListener("click", () => {
      [by, down] = [key, by === key ? !down : key !== "name"];
      fill();
    });
    return element("th", { scope: "col", "data-key": title, class: key === "name" ? "" : "number" }, button);
  }), element("th", { scope: "col", class: "owners" }, "Change"));
  at("class-search").addEventListener("input", fill);
  at("add-class").addEventListener("submit", (event) => {
    event.preventDefault();
    const names = [at("class-name").value.trim()];
    const words = at("class-words").value.trim();
    change(null, () => call("POST", "/classes", words ? { names, descriptions: [words] } : { names }), () => {
      at("add-class").reset();
      return `${names[0]} is on lists from the next question on.`;
    });
  });
  return async (_, entered) => {
    if (entered || Date.now() - looked >= SLOW_MS) await load();
  };
}

async function load() {
  looked = Date.now();
  const [all, agreement, counts] = await Promise.all([call("GET", "/review/classes"), call("GET", "/agreement"), call("GET", "/classes/counts")]);
  none = counts.none;
  const alphas = new Map(agreement.classes.map((one) => [one.class_id, one]));
  rows = all.map((one) => ({ ...one, alpha: alphas.get(one.id)?.value ?? null }));
  fill();
  showConfused(agreement.confusion);
}

function showConfused(confusion) {
  const called = (k) => (k === -1 ? "None" : rows[k]?.name ?? k);
  const apart = confusion.filter(({ one, other }) => one !== other).sort((a, b) => b.pairs - a.pairs).slice(0, MOST_CONFUSED);
  const made = apart.map(({ one, other, pairs }) => bar(`${called(one)} and ${called(other)}`, pairs, apart[0].pairs, count(pairs)));
  at("confusion").replaceChildren(...(made.length ? made : [element("p", {}, "No such pairs so far.")]));
}

function fill() {
  const wanted = at("class-search").value.trim().toLowerCase();
  const all = rows.reduce((sum, one) => sum + one.answers, none);
  const sorted = rows.filter((one) => one.name.toLowerCase().includes(wanted)).sort((one, other) => {
    const [a, b] = [one[by], other[by]];
    const order = typeof a === "string" ? a.localeCompare(b) : (a ?? -1) - (b ?? -1);
    return (down ? -order : order) || one.id - other.id;
  });
  for (const head of at("class-head").querySelectorAll("th[data-key]")) {
    const key = COLUMNS.find(([title]) => title === head.dataset.key)[1];
    if (key === by && head.dataset.key !== "Share") head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  const made = sorted.map((one) => row(one, all));
  if (!wanted) {
    const cells = [count(none), percent(all ? none / all : null), "", "", ""].map(figure);
    made.unshift(element("tr", {}, element("th", { scope: "row" }, "None"), ...cells, element("td", { class: "owners" })));
  }
  at("classes").replaceChildren(...made);
}

const figure = (text) => element("td", { class: "number" }, text);

function row(one, all) {
  const label = element("th", { scope: "row", dir: "auto" }, ...breakable(one.name));
  const share = percent(all ? one.answers / all : null);
  const cells = [count(one.answers), share, one.alpha === null ? "–" : one.alpha.toFixed(2), count(one.gold), count(one.known)];
  const ended = one.ended_at !== null;
  if (ended) label.append(" ", element("span", { class: "badge" }, one.merged_into === null ? "retired" : `part of ${rows[one.merged_into].name}`));
  if (one.description) label.append(element("p", { class: "soft" }, one.description));
  const menu = element("td", { class: "owners" }, element("div", { class: "actions" }, ...changes(one).map(([words, act]) => button(words, one, act))));
  return element("tr", { id: `class-${one.id}`, class: ended ? "gone" : "" }, label, ...cells.map(figure), menu);
}

function changes(one) {
  if (one.ended_at === null) return [["Rename", rename], ["Describe", describe], ["Merge", merge], ["Retire", retire]];
  return one.merged_into === null ? [["Restore", restore]] : [];
}

function button(words, one, act) {
  const made = element("button", { type: "button", class: "small", "aria-label": `${words}: ${one.name}` }, words);
  made.addEventListener("click", () => act(one));
  return made;
}

async function change(one, act, said) {
  try {
    const reply = await act();
    at("class-said").textContent = said(reply) + (reply?.remark ? ` Probably a slip: ${reply.remark}.` : "");
    await load();
    // the row was made anew; who has moved on meanwhile stays there
    if (one && document.activeElement === document.body) (at(`class-${one.id}`)?.querySelector("button") ?? at("class-search")).focus();
  } catch (error) {
    at("class-said").textContent = failure(error, "nothing was changed");
  }
}

async function rename(one) {
  const name = await ask({ title: `Rename ${one.name}`, words: "Its answers stay.", label: "New name", value: one.name, go: "Rename" });
  if (name && name !== one.name) change(one, () => call("PATCH", `/classes/${one.id}`, { name }), () => `${one.name} is now called ${name}.`);
}

async function describe(one) {
  const [title, label] = [`Describe ${one.name}`, "What it means, in a sentence"];
  const words = await ask({ title, words: "Annotators read it below the name.", label, value: one.description ?? "", go: "Save" });
  if (words !== null) change(one, () => call("POST", "/classes", { names: [one.name], descriptions: [words] }), () => `${one.name} is described.`);
}

async function merge(one) {
  const others = rows.filter((other) => other.ended_at === null && other !== one).sort((a, b) => a.name.localeCompare(b.name));
  const words = `${counted(one.answers, "answer", "answers")} will belong to the other class, for good.`;
  const into = await ask({ title: `Merge ${one.name}`, words, label: "Into which class", options: others.map((other) => [other.id, other.name]), go: "Merge", danger: true });
  if (into) change(one, () => call("POST", `/classes/${one.id}/merge`, { into: Number(into) }), () => `${one.name} is a part of ${rows[into].name}.`);
}

async function retire(one) {
  const words = `It leaves all lists, and ${counted(one.answers, "answer", "answers")} will be asked for again. It can be restored.`;
  if (!(await ask({ title: `Retire ${one.name}?`, words, go: "Retire", danger: true }))) return;
  change(one, () => call("POST", `/classes/${one.id}/retire`, {}), ({ answers }) => `${one.name} is retired; ${counted(answers, "answer", "answers")} will be asked for again.`);
}

function restore(one) {
  change(one, () => call("POST", `/classes/${one.id}/restore`, {}), () => `${one.name} is back in use.`);
}
