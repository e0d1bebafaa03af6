// People: what each did, links and sessions, how far they agree. Nobody but owners and reviewers sees it.
import { call, failure } from "./api.js";
import { curve } from "./curve.js";
import { at, element } from "./dom.js";
import { count, percent } from "./figures.js";
import { showPeople, watchPeople } from "./people.js";

const HERE = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/u;
const SLOW_MS = 30_000;
let agreed = new Map();
let looked = 0;

export function start({ refresh, owner }) {
  if (!owner) at("staff-heading").textContent = "Where you are signed in";
  watchPeople(refresh);
  at("invite").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("name").value.trim();
    make("link", async () => {
      link("link", name, await call("POST", "/annotators", { name }));
      at("name").value = "";
      await refresh();
    });
  });
  at("staff-role").addEventListener("change", ({ target }) => (at("staff-make").textContent = target.value === "program" ? "Make a token" : "Make a link"));
  at("staff").addEventListener("submit", (event) => {
    event.preventDefault();
    const body = { name: at("staff-name").value.trim(), role: at("staff-role").value };
    make("staff-link", async () => {
      if (body.role === "program") token(await call("POST", "/tokens", { label: body.name }));
      else link("staff-link", body.name, await call("POST", "/admin-links", body));
      at("staff-name").value = "";
      await showSessions(owner);
    });
  });
  return async (status, entered) => {
    showPeople(status.annotators, (name, made) => link("link", name, made), agreed);
    if (!entered && Date.now() - looked < SLOW_MS) return;
    looked = Date.now();
    await Promise.all([showAgreement(status.annotators), showSessions(owner)]);
    showPeople(status.annotators, (name, made) => link("link", name, made), agreed);
  };
}

async function make(place, act) {
  try {
    await act();
  } catch (error) {
    at(place).textContent = failure(error, "nothing was changed");
  }
}

function link(place, name, made) {
  const copy = element("button", { type: "button", class: "small" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(made.link);
    copy.textContent = "Copied";
  });
  at(place).replaceChildren(`Send this link to ${name}: `, element("code", { id: place === "link" ? "made-link" : "made-staff-link" }, made.link), " ");
  if (navigator.clipboard) at(place).append(copy); // exists only over TLS or on this machine
  if (HERE.test(made.link)) at(place).append(element("span", { class: "soft" }, " It opens on this machine only: for others, serve the project with --host or --public-url."));
}

function token(made) {
  at("staff-link").replaceChildren("An owner's token, shown once (Authorization: Bearer …): ", element("code", { id: "made-token" }, made.token));
}

async function showAgreement(people) {
  const found = await call("GET", "/agreement");
  const names = new Map(people.map((one) => [one.id, one.name]));
  const { alpha } = found;
  at("alpha").textContent = alpha
    ? `Krippendorff's alpha ${alpha.value.toFixed(2)} (${alpha.low.toFixed(2)} to ${alpha.high.toFixed(2)}), ${count(alpha.items)} items`
    : "Nobody answered the same items yet: let several people answer each item (Settings).";
  at("alpha-curve").replaceChildren(...(found.times.length > 1 ? [curve(found.times.map((one, place) => [place + 1, one.value]), "Alpha", "parts of the work")] : []));
  const sums = new Map();
  for (const { one, other, items, same } of found.pairs) {
    for (const who of [one, other]) {
      const [all, agree] = sums.get(who) ?? [0, 0];
      sums.set(who, [all + items, agree + same]);
    }
  }
  agreed = new Map([...sums].map(([who, [all, agree]]) => [who, agree / all]));
  const rows = found.pairs.slice(0, 100).map(({ one, other, items, same }) =>
    element("tr", {}, element("th", { scope: "row", dir: "auto" }, `${names.get(one) ?? one} and ${names.get(other) ?? other}`), element("td", {}, count(items)), element("td", {}, percent(same / items))),
  );
  const head = element("thead", {}, element("tr", {}, ...["Two people", "Items", "Agree"].map((text) => element("th", { scope: "col" }, text))));
  at("pairs").replaceChildren(...(rows.length ? [element("details", {}, element("summary", {}, "Pair by pair"), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of pairs" }, element("table", {}, head, element("tbody", {}, ...rows))))] : []));
}

// An owner sees everybody's, a reviewer their own.
async function showSessions(owner) {
  const place = owner ? "/people/sessions" : "/sessions";
  const [sessions, tokens] = await Promise.all([call("GET", place), owner ? call("GET", "/tokens") : []]);
  const rows = [...sessions.map((one) => row(one, one.name, one.role, `${place}/${one.id}`, owner)), ...tokens.map((one) => row(one, one.label, "program", `/tokens/${one.id}`, owner))];
  const head = element("thead", {}, element("tr", {}, ...["Signed in", "Role", "Since", ""].map((text) => (text ? element("th", { scope: "col" }, text) : element("td")))));
  at("sessions").replaceChildren(element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of sessions" }, element("table", { class: "cards" }, head, element("tbody", {}, ...rows))));
}

function row(one, name, role, path, owner) {
  const end = element("button", { type: "button", class: "small", "aria-label": `End: ${name}` }, "End");
  end.addEventListener("click", () => make("staff-link", async () => {
    await call("DELETE", path);
    await showSessions(owner);
  }));
  const since = new Date(1000 * one.created_at).toLocaleDateString(document.documentElement.lang);
  return element("tr", {}, element("th", { scope: "row", dir: "auto" }, name), element("td", {}, role), element("td", {}, since), element("td", {}, one.this ? element("span", { class: "badge" }, "This browser") : end));
}
