// The admin's page: the state of the project, renewed every few seconds; invitations and exports.
import { ApiError, call } from "./api.js";
import { refreshCounts } from "./counts.js";
import { curve } from "./curve.js";
import { at, element, notice } from "./dom.js";
import { count, hours, percent, seconds } from "./figures.js";
import { showPeople } from "./people.js";

const RENEW_MS = 3000;

function figures(status) {
  const { agreement } = status;
  const pairs = [
    ["Answers", count(status.answers)],
    ["None share", percent(status.none_share)],
    ["Skipped", count(status.skips)],
    ["Time spent", hours(status.hours)],
    [agreement.pairs ? `Agree, ${count(agreement.pairs)} pairs` : "Agreement", percent(agreement.share)],
    ["Items done", `${count(status.items_done)} of ${count(status.items)}`],
    ["Classes", count(status.classes)],
  ];
  if (status.score) {
    const { accuracy, low, high, items, questions_for_a_point: more } = status.score;
    pairs.push([`Model right, ${count(items)} sampled items`, `${percent(accuracy)} (${percent(low)} to ${percent(high)})`]);
    if (more !== null) pairs.push(["One point more", `about ${count(Number(more.toPrecision(1)))} questions`]);
  }
  at("figures").replaceChildren(
    ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

function show(status) {
  at("title").textContent = status.title;
  document.title = `${status.title} · Admin · Shortlist`;
  const { done, total } = status.progress;
  at("bar").max = Math.max(total, 1);
  at("bar").value = done;
  at("progress").textContent = `${count(done)} of ${count(total)} done`;
  figures(status);
  showPeople(status.annotators, link);
  const sizes = status.seconds_by_size;
  at("sizes").hidden = !sizes.length;
  at("seconds").replaceChildren(
    ...sizes.map(({ size, median_seconds: median }) =>
      element("tr", {}, element("th", { scope: "row" }, size), element("td", {}, seconds(median))),
    ),
  );
  const accuracy = status.measures.filter(({ name }) => name === "accuracy");
  at("accuracy").hidden = !accuracy.length;
  if (accuracy.length) {
    at("accuracy-now").textContent = `${percent(accuracy.at(-1).value)} after ${count(accuracy.at(-1).answers)} answers`;
    at("curve").replaceChildren(curve(accuracy.map(({ answers, value }) => [answers, value])));
  }
}

async function refresh() {
  try {
    show(await call("GET", "/status"));
    await refreshCounts();
    notice(null);
  } catch (error) {
    if (!(error instanceof ApiError)) notice("No connection. Trying again …");
    else if (error.status >= 500) notice("The server has a problem. Trying again …");
    else if (error.status === 401) notice("You are signed out. Use a link that `shortlist annotate invite PROJECT` prints.");
    else if (error.status === 403) location.replace("/");
    else notice(error.message);
  }
}

function link(name, made) {
  const copy = element("button", { type: "button", class: "small" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(made.link);
    copy.textContent = "Copied";
  });
  at("link").replaceChildren(`Send this link to ${name}: `, element("code", { id: "made-link" }, made.link), " ");
  if (navigator.clipboard) at("link").append(copy); // exists only over TLS or on this machine
}

at("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = at("name").value.trim();
  try {
    link(name, await call("POST", "/annotators", { name }));
    at("name").value = "";
    await refresh();
  } catch (error) {
    at("link").textContent = error instanceof ApiError ? error.message : "No connection: no link was made.";
  }
});
at("sign-out").addEventListener("click", async () => {
  await call("DELETE", "/session?role=admin").catch(() => {});
  location.replace("/join");
});
at("counts").addEventListener("toggle", refresh);

refresh();
setInterval(() => document.visibilityState === "visible" && refresh(), RENEW_MS);
