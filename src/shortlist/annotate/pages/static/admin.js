// The admin's page: a picture of the project, renewed every few seconds; invitations and exports.
import { ApiError, call, element, notice } from "./api.js";
import { curve } from "./curve.js";

const at = (id) => document.getElementById(id);
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
const seconds = (value) => (value === null ? "–" : value.toFixed(1));

function row(...cells) {
  const made = document.createElement("tr");
  for (const cell of cells) made.append(cell instanceof Node ? cell : element("td", {}, cell));
  return made;
}

function person(who) {
  const action = element("td");
  const button = element("button", { type: "button" }, who.active ? "New link" : "Invite again");
  button.addEventListener("click", async () => link(who.name, await call("POST", `/annotators/${who.id}/invite`)));
  action.append(button);
  const figures = [who.answers, percent(who.none_share), who.skips, seconds(who.median_seconds)];
  return row(element("th", { scope: "row" }, who.name), ...figures, who.gold, who.slips, who.misses, action);
}

function link(name, made) {
  const place = at("link");
  place.replaceChildren(`Send this link to ${name}: `, element("code", {}, made.link));
}

function figures(status) {
  const pairs = [
    ["Answers", status.answers],
    ["None share", percent(status.none_share)],
    ["Skipped", status.skips],
    ["Agreement", `${percent(status.agreement.share)} of ${status.agreement.pairs} pairs`],
    ["Items done", `${status.items_done} of ${status.items}`],
    ["Classes", status.classes],
  ];
  at("figures").replaceChildren(...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function show(status) {
  at("title").textContent = status.title;
  const { done, total } = status.progress;
  at("bar").value = total ? done / total : 0;
  at("progress").textContent = `${done} of ${total} answers`;
  figures(status);
  at("people").replaceChildren(...status.annotators.map(person));
  at("seconds").replaceChildren(...status.seconds_by_size.map((size) => row(size.size, seconds(size.median_seconds))));
  const accuracy = status.measures.filter((measure) => measure.name === "accuracy");
  at("accuracy").hidden = !accuracy.length;
  if (accuracy.length) {
    at("accuracy-now").textContent = `${percent(accuracy.at(-1).value)} after ${accuracy.at(-1).answers} answers`;
    at("curve").replaceChildren(curve(accuracy.map(({ answers, value }) => [answers, value])));
  }
}

async function refresh() {
  try {
    show(await call("GET", "/status"));
    notice(null);
  } catch (error) {
    const signedOut = error instanceof ApiError && [401, 403].includes(error.status);
    notice(signedOut ? "You are signed out. Use the link that the server printed." : "No connection. Trying again …");
  }
}

at("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = at("name").value.trim();
  try {
    link(name, await call("POST", "/annotators", { name }));
    at("name").value = "";
    await refresh();
  } catch (error) {
    at("link").textContent = error.message;
  }
});

await refresh();
setInterval(() => document.visibilityState === "visible" && refresh(), 5000);
