// Settings, backups, and the log of what owners and reviewers did.
import { call, failure, send } from "./api.js";
import { at, element } from "./dom.js";
import { count } from "./figures.js";

const FIELDS = { title: "set-title", policy: "set-policy", size: "set-size", overlap: "set-overlap", gold_every: "set-gold", pinned: "set-pinned",
  typing: "set-typing", compare: "set-compare", names: "set-names", score: "set-score", epsilon: "set-epsilon" };
let before = {}; // the fields as they were filled: only what was changed is sent

const valueOf = (field) => (field.type === "checkbox" ? field.checked : field.type === "number" ? field.valueAsNumber : field.value);
const values = () => Object.fromEntries(Object.entries(FIELDS).map(([name, id]) => [name, valueOf(at(id))]));
const when = (seconds) => new Date(1000 * seconds).toLocaleString(document.documentElement.lang, { dateStyle: "short", timeStyle: "short" });

export async function start({ refresh }) {
  at("set-policy").addEventListener("change", reveal);
  at("settings").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(Object.entries(values()).filter(([name, value]) => value !== before[name]));
    await saying("settings-said", "not saved", async () => {
      fill(await call("PATCH", "/settings", wanted));
      await Promise.all([log(), refresh()]);
      return "Saved.";
    });
  });
  at("back-up").addEventListener("click", () => saying("backup-said", "no backup was made", async () => {
    const made = await send("POST", "/backups");
    await Promise.all([log(), backups()]);
    return `Backed up: ${made.name}`;
  }));
  at("check").addEventListener("click", () => saying("backup-said", "nothing was looked at", async () => {
    const { problems } = await send("GET", "/check");
    return problems.length ? [`${count(problems.length)} problems:`, ...problems.slice(0, 20)].join("\n") : "No damage found.";
  }));
  return async (_, entered) => {
    if (entered) await Promise.all([settings(), log(), backups()]);
  };
}

async function settings() {
  const [{ names }, now] = await Promise.all([call("GET", "/classes"), call("GET", "/settings")]);
  if (Object.entries(before).some(([name, value]) => values()[name] !== value)) return; // changed and not saved: it stays
  at("set-pinned").replaceChildren(element("option", { value: "" }, "No class"), ...names.map((name) => element("option", {}, name)));
  fill(now);
}

async function saying(place, otherwise, act) {
  at(place).textContent = "…";
  try {
    at(place).textContent = await act();
  } catch (error) {
    at(place).textContent = failure(error, otherwise);
  }
}

function fill(now) {
  for (const [name, id] of Object.entries(FIELDS)) {
    if (at(id).type === "checkbox") at(id).checked = now[name];
    else at(id).value = now[name] ?? "";
  }
  before = values();
  reveal();
}

function reveal() {
  at("set-model").hidden = at("set-model").disabled = at("set-policy").value === "uniform";
}

async function backups() {
  const rows = await call("GET", "/backups");
  at("backups").replaceChildren(...rows.slice(0, 10).map((one) => element("li", {}, `${one.name}, ${when(one.at)}, ${count(Math.ceil(one.bytes / 1000))} kB`)));
}

async function log() {
  const rows = await call("GET", "/audit?limit=100");
  at("audit-table").hidden = !rows.length;
  at("audit").replaceChildren(...rows.map((one) => element("tr", {}, element("td", {}, when(one.at)),
    element("th", { scope: "row", dir: "auto" }, one.actor), element("td", { class: "wrap" }, `${one.action} ${subject(one)}`))));
}

// As the other pages name it; what was erased since has no name but its number.
const subject = (one) => (one.called === null ? one.subject : `${one.subject.split(" ")[0]} ${one.called}`);
