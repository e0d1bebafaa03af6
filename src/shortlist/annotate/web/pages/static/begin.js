// From files to a project. The token follows the #: it is sent with every request and leaves the address bar.
import { at, element, notice } from "./dom.js";
import { count } from "./figures.js";
import { say } from "./words.js";

const token = location.hash.slice(1) || sessionStorage.getItem("shortlist-begin");
sessionStorage.setItem("shortlist-begin", token ?? ""); // a reload keeps it
history.replaceState(null, "", "/begin");

let run = 0; // of the latest look: an earlier reply that comes later is dropped
let timer = null;
let uploading = false;

async function call(path, body, headers = {}) {
  let response = null;
  try {
    response = await fetch(`/api/begin${path}`, { method: "POST", body, headers: { Authorization: `Bearer ${token}`, ...headers } });
  } catch {
    throw new Error(say("begin_gone"));
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.message ?? response.statusText);
  return found;
}

const wishes = () => ({
  title: at("title").value,
  text_column: at("text-column").value,
  label_column: at("label-column").value,
  item_column: at("item-column").value,
  classes: at("classes").value.split("\n").map((line) => line.trim()).filter(Boolean),
  size: Number(at("size").value),
});

async function attempt(act) {
  try {
    await act();
    notice(null);
  } catch (error) {
    notice(error.message);
  }
}

// The project's own server takes this one's place, which lasts a moment.
async function served() {
  for (let tries = 0; tries < 100; tries += 1) {
    const reply = await fetch("/join").catch(() => null);
    if (reply?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function fill(select, names, chosen) {
  select.replaceChildren(...names.map(([value, words]) => element("option", value === chosen ? { value, selected: "" } : { value }, words)));
}

const badge = (name, place) => element("span", { class: place ? "badge" : "badge accent", dir: "auto" }, name); // the likeliest first

function show(found, anew) {
  const texts = found.text_column !== "";
  const columns = found.columns.map((name) => [name, texts ? name : say("begin_folders")]);
  at("columns").hidden = !columns.length;
  for (const id of ["text-choice", "item-choice"]) at(id).hidden = !texts;
  fill(at("text-column"), columns, found.text_column);
  fill(at("label-column"), [["", say("begin_no_column")], ...columns], found.label_column);
  fill(at("item-column"), [...(found.columns.includes("item") ? [] : [["", say("begin_row_numbers")]]), ...columns], found.item_column);
  const nothing = found.labelled > 0 && !found.to_ask;
  const labelled = found.labelled ? say("begin_labelled", { count: count(found.labelled), rows: count(found.rows) }) : "";
  at("labelled").textContent = nothing ? say("begin_nothing_left") : labelled;
  at("ask-all").hidden = !nothing;
  at("make").disabled = nothing;
  if (anew) at("classes").value = found.classes.join("\n");
  at("counted").textContent = say("begin_counted", { count: count(found.classes.length) });
  const alike = found.alike.slice(0, 5).map((names) => names.map((name) => `“${name}”`).join(" – ")).join(", ");
  at("alike").textContent = alike && say("begin_alike", { names: alike + (found.alike.length > 5 ? " …" : "") });
  at("look").hidden = !found.guesses.length;
  at("guesses").replaceChildren(
    ...found.guesses.map(({ text, classes }) =>
      element("li", {}, element("span", { dir: "auto" }, text), element("span", {}, ...classes.map(badge))),
    ),
  );
}

// The server looks at them once the last is there.
async function upload(files) {
  if (uploading || !files.length) return;
  busy(true);
  notice(null);
  at("wishes").hidden = true; // it is about the file before: nobody should make a project of that under this one's name
  await attempt(async () => {
    let found = null;
    for (const [place, file] of files.entries()) {
      at("read").textContent = files.length > 1 ? say("begin_sending", { done: count(place), all: count(files.length) }) : say("loading");
      const name = encodeURIComponent(file.webkitRelativePath || file.name);
      found = await call(`/file?place=${place}&of=${files.length}`, file, { "X-Name": name, "Content-Type": "application/octet-stream" });
    }
    const { name, webkitRelativePath: path } = files[0];
    at("read").textContent = say(`begin_read_${found.kind}`, { name, rows: count(found.rows) });
    const title = files.length === 1 || path ? (path || name).split("/")[0] : "";
    at("title").value = title.replace(/\.\w+$/u, "").replace(/[_-]+/gu, " ");
    show(found, true);
    at("wishes").hidden = false;
  });
  if (!at("notice").hidden) at("read").textContent = "";
  busy(false);
}

// Meanwhile no other file is chosen: its name would stand there, and this one's rows below it.
function busy(now) {
  uploading = now;
  for (const id of ["file", "whole"]) at(id).disabled = now;
}

// `anew`: another column was chosen, so its classes take the place of those in the box.
async function look(anew = false) {
  const mine = ++run;
  await attempt(async () => {
    const wanted = wishes();
    const found = await call("/look", JSON.stringify({ ...wanted, classes: anew ? [] : wanted.classes }));
    if (mine === run) show(found, anew);
  });
}

for (const id of ["file", "whole"]) at(id).addEventListener("change", ({ target }) => upload([...target.files]));
const drop = document.querySelector(".drop");
for (const kind of ["dragover", "dragleave", "drop"]) {
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind !== "drop") return;
    const folder = [...event.dataTransfer.items].some((item) => item.webkitGetAsEntry()?.isDirectory);
    if (folder) notice(say("begin_no_folder"));
    else upload([...event.dataTransfer.files]);
  });
}
for (const id of ["text-column", "item-column"]) at(id).addEventListener("change", () => look());
at("label-column").addEventListener("change", () => look(true));
at("ask-all").addEventListener("click", () => {
  at("label-column").value = ""; // its classes stay in the box
  look();
});
at("classes").addEventListener("input", () => {
  notice(null);
  at("counted").textContent = say("begin_counted", { count: count(new Set(wishes().classes).size) });
  clearTimeout(timer);
  timer = setTimeout(look, 500);
});
at("wishes").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  at("make").disabled = true;
  attempt(async () => {
    const made = await call("/make", JSON.stringify(wishes()));
    await served();
    at("to-admin").href = made.admin;
    at("to-you").href = made.you;
    at("again").textContent = made.again;
    at("left-out").hidden = !made.left_out.length;
    at("left-out").querySelector("ul").replaceChildren(...made.left_out.map((line) => element("li", { dir: "auto" }, line)));
    for (const id of ["step-file", "wishes"]) at(id).hidden = true;
    at("ready").hidden = false;
    at("ready").focus();
  }).finally(() => (at("make").disabled = false));
});
// The link works once; after that this browser is signed in.
at("to-admin").addEventListener("click", () => setTimeout(() => (at("to-admin").href = "/admin")));
if (!token) notice(say("begin_no_token"));
else upload([...at("file").files]); // chosen before this script was here
