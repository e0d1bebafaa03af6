// Settings, and the log of what owners and reviewers did.
import { ApiError, call } from "./api.js";
import { at, element } from "./dom.js";

const FIELDS = { title: "set-title", policy: "set-policy", size: "set-size", overlap: "set-overlap", gold_every: "set-gold" };

export async function start({ refresh }) {
  fill(await call("GET", "/settings"));
  await log();
  at("settings").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(Object.entries(FIELDS).map(([name, id]) => [name, at(id).type === "number" ? at(id).valueAsNumber : at(id).value]));
    try {
      const now = await call("PATCH", "/settings", wanted);
      fill(now);
      at("settings-said").textContent = now.restart ? "Saved. Start the server again for the new lists." : "Saved.";
      await Promise.all([log(), refresh()]);
    } catch (error) {
      at("settings-said").textContent = error instanceof ApiError ? error.message : "No connection: not saved.";
    }
  });
}

function fill(now) {
  for (const [name, id] of Object.entries(FIELDS)) at(id).value = now[name];
}

async function log() {
  try {
    const rows = await call("GET", "/audit?limit=100");
    at("audit").replaceChildren(...rows.map((one) => element("tr", {},
      element("td", {}, new Date(1000 * one.at).toLocaleString(document.documentElement.lang, { dateStyle: "short", timeStyle: "short" })),
      element("th", { scope: "row", dir: "auto" }, one.actor), element("td", { class: "wrap" }, `${one.action} ${one.subject}`))));
  } catch (error) {
    if (error.status !== 403) throw error; // a reviewer does not see it
  }
}
