// Data: files in, with a look at what will happen and a bar; files out.
import { ApiError, call, failure, send } from "./api.js";
import { at, element } from "./dom.js";
import { count, counted } from "./figures.js";

const POLL_MS = 300;
const WORDS = {
  items: ["item", "items"], media: ["item", "items"], gold: ["gold answer", "gold answers"], known: ["known label", "known labels"],
  scores: ["item with scores", "items with scores"], classes: ["class", "classes"], "label-studio": ["answer", "answers"],
};
const GROUPS = [
  ["Labels", "A table with one class per item: what most people picked or a reviewer gave, or weighted by how reliable people are.", { "labels.csv": "Most picked", "dawid-skene.csv": "Weighted (Dawid-Skene)" }],
  ["Answers", "Every answer with the list that was shown, to train a model on: shortlist train DATA --labels answers.csv. CSV, JSONL and Parquet hold the same; answers on gold items are kept apart.", { "answers.csv": "CSV", "answers.jsonl": "JSONL", "answers.parquet": "Parquet", "gold-answers.csv": "On gold items", "crowd-kit.csv": "For crowd-kit" }],
  ["To look at again", "What people or the model differ about, and what reviewers changed.", { "second-look.csv": "Suspicious items", "corrections.csv": "Corrections" }],
  ["For Label Studio", "Tasks and the page that asks them.", { "label-studio.json": "Tasks", "label-studio.xml": "Config" }],
];
let names = [];

export async function start({ refresh }) {
  names = (await call("GET", "/exports")).map((one) => one.name);
  const before = await call("GET", "/settings"); // what is left empty is as in the first table
  if (before.text_column) at("upload-text").placeholder = before.text_column;
  if (before.item_column) at("upload-item").placeholder = before.item_column;
  links();
  at("pseudonyms").addEventListener("change", links);
  at("upload").addEventListener("input", () => (at("upload-go").hidden = true));
  at("upload-what").addEventListener("input", suit);
  at("upload").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(look);
  });
  at("upload-go").addEventListener("click", () => trying(async () => {
    at("upload-go").disabled = true;
    await read();
    at("upload").reset();
    suit();
    at("upload-go").hidden = true;
    await refresh();
  }));
}

// The fields that what comes in has.
function suit() {
  const what = at("upload-what").value;
  at("upload-file").multiple = what === "media";
  at("upload-columns").hidden = what !== "items";
  at("upload-all").hidden = what === "media";
}

function links() {
  const more = at("pseudonyms").checked ? "?pseudonyms=true" : "";
  const link = (name, words) => element("a", { href: `/api/v1/export/${name}${more}`, download: "" }, words);
  const grouped = new Set(GROUPS.flatMap(([, , titles]) => Object.keys(titles)));
  const others = Object.fromEntries(names.filter((name) => !grouped.has(name)).map((name) => [name, name]));
  const groups = [...GROUPS, ["Other", "", others]].map(([title, words, titles]) => [title, words, Object.entries(titles).filter(([name]) => names.includes(name))]);
  at("exports").replaceChildren(...groups.filter(([, , found]) => found.length).map(([title, words, found]) =>
    element("section", {}, element("h3", {}, title), element("p", { class: "soft" }, words), element("p", { class: "links" }, ...found.map(([name, text]) => link(name, text))))));
}

async function trying(act) {
  try {
    await act();
  } catch (error) {
    at("upload-said").textContent = failure(error, "not everything was read in");
    at("upload-bar").hidden = true;
  } finally {
    at("upload-go").disabled = false;
  }
}

function address(step, file) {
  const wanted = new URLSearchParams({ what: at("upload-what").value, name: file.name });
  if (at("upload-what").value === "items") {
    if (at("upload-text").value) wanted.set("text_column", at("upload-text").value);
    if (at("upload-item").value) wanted.set("item_column", at("upload-item").value);
  }
  if (!step && at("upload-strict").checked) wanted.set("strict", "true");
  return `/uploads${step}?${wanted}`;
}

async function look() {
  const what = at("upload-what").value;
  const files = [...at("upload-file").files];
  if (what === "media" || what === "label-studio") {
    at("upload-said").textContent = what === "media" ? `${count(files.length)} files, each an item named as its file.` : "Answers of tasks that came from here are added; known ones are left out.";
    at("upload-go").textContent = "Add";
    at("upload-go").hidden = false;
    return;
  }
  const found = await send("POST", address("/preview", files[0]), files[0]);
  if (at("upload-what").value !== what || at("upload-file").files[0] !== files[0]) return; // another one was chosen since
  report("will be added", found);
  const some = found.added || found.known || found.scored || what === "classes";
  at("upload-go").textContent = `Add ${WORDS[what][1]}`;
  at("upload-go").hidden = !some;
}

function total(found) {
  const what = at("upload-what").value;
  return { known: found.known, scores: found.scored, classes: found.classes }[what] ?? found.added;
}

function byReason(skipped) {
  const items = new Map();
  for (const { item, reason } of skipped) {
    if (!items.has(reason)) items.set(reason, []);
    items.get(reason).push(item);
  }
  return [...items];
}

function report(words, found) {
  const what = at("upload-what").value;
  const some = what === "classes" ? `${counted(found.classes, ...WORDS.classes)} ${words === "added" ? "now" : "then"}.` : `${counted(total(found), ...WORDS[what])} ${words}.`;
  const left = found.skipped.length + found.more_skipped;
  const reasons = byReason(found.skipped).slice(0, 10);
  const few = (items) => items.slice(0, 3).join(", ") + (items.length > 3 ? ` and ${count(items.length - 3)} more` : "");
  const list = element("ul", { class: "soft" }, ...reasons.map(([reason, items]) => element("li", { dir: "auto" }, `${few(items)}: ${reason}`)));
  const others = left - reasons.reduce((sum, [, items]) => sum + items.length, 0);
  if (others) list.append(element("li", {}, `and ${count(others)} more`));
  const slips = found.remark ? [element("p", {}, `Probably slips: ${found.remark}.`)] : [];
  at("upload-said").replaceChildren(element("p", {}, some), ...(left ? [element("p", {}, `${count(left)} left out:`), list] : []), ...slips);
}

async function read() {
  const what = at("upload-what").value;
  const files = [...at("upload-file").files];
  if (what === "media") return media(files);
  if (what === "label-studio") {
    const kind = files[0].name.toLowerCase().endsWith(".csv") ? "csv" : "json";
    return report("added", { ...(await send("POST", `/import/label-studio?kind=${kind}&strict=${at("upload-strict").checked}`, files[0])), more_skipped: 0 });
  }
  let found = await send("POST", address("", files[0]), files[0]);
  while (found.state === "running") {
    progress(found.done, found.total);
    await new Promise((done) => setTimeout(done, POLL_MS));
    found = await call("GET", `/uploads/${found.id}`);
  }
  at("upload-bar").hidden = true;
  if (found.state === "failed") at("upload-said").textContent = found.message;
  else report("added", found);
}

async function media(files) {
  const skipped = [];
  for (const [done, file] of files.entries()) {
    progress(done, files.length);
    try {
      await send("POST", `/items/media?${new URLSearchParams({ name: file.name })}`, file);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      skipped.push({ item: file.name, reason: error.message });
    }
  }
  at("upload-bar").hidden = true;
  report("added", { added: files.length - skipped.length, skipped, more_skipped: 0 });
}

function progress(done, all) {
  at("upload-bar").hidden = false;
  at("upload-bar").max = Math.max(all, 1);
  at("upload-bar").value = done;
}
