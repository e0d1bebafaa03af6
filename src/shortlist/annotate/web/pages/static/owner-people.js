// People: what each did, links and sessions, how far they agree. Nobody but owners and reviewers sees it.
import { call, failure } from "./api.js";
import { curve } from "./curve.js";
import { at, element } from "./dom.js";
import { count, percent } from "./figures.js";
import { table } from "./parts.js";
import { showPeople, watchPeople } from "./people.js";

const HERE = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/u;
const SLOW_MS = 30_000;
const MOST_PAIRS = 100;
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
  const { alpha, times } = found;
  at("alpha").textContent = alpha
    ? `Krippendorff's alpha ${alpha.value.toFixed(2)} (${alpha.low.toFixed(2)} to ${alpha.high.toFixed(2)}), ${count(alpha.items)} items`
    : "Nobody answered the same items yet: let several people answer each item (Settings).";
  at("alpha-curve").replaceChildren(...(times.length > 1 ? [curve(times.map((one, place) => [place + 1, one.value]), "Alpha", "parts of the work")] : []));
  agreed = shares(found.pairs);
  showPairs(found.pairs, new Map(people.map((one) => [one.id, one.name])));
}

// How often each person agrees with others.
function shares(pairs) {
  const sums = new Map();
  for (const { one, other, items, same } of pairs) {
    for (const who of [one, other]) {
      const [all, agree] = sums.get(who) ?? [0, 0];
      sums.set(who, [all + items, agree + same]);
    }
  }
  return new Map([...sums].map(([who, [all, agree]]) => [who, agree / all]));
}

function showPairs(pairs, names) {
  const called = (id) => names.get(id) ?? id;
  const rows = pairs.slice(0, MOST_PAIRS).map(({ one, other, items, same }) => [`${called(one)} and ${called(other)}`, count(items), percent(same / items)]);
  const made = table("Table of pairs", ["Two people", "Items", "Agree"], rows);
  at("pairs").replaceChildren(...(rows.length ? [element("details", {}, element("summary", {}, "Pair by pair"), made)] : []));
}

// An owner sees everybody's, a reviewer their own.
async function showSessions(owner) {
  const place = owner ? "/people/sessions" : "/sessions";
  const [sessions, tokens] = await Promise.all([call("GET", place), owner ? call("GET", "/tokens") : []]);
  const since = (one) => new Date(1000 * one.created_at).toLocaleDateString(document.documentElement.lang);
  const row = (one, name, role, path) => [name, role, since(one), one.this ? element("span", { class: "badge" }, "This browser") : endButton(name, path, owner)];
  const rows = sessions.map((one) => row(one, one.name, one.role, `${place}/${one.id}`));
  rows.push(...tokens.map((one) => row(one, one.label, "program", `/tokens/${one.id}`)));
  at("sessions").replaceChildren(table("Table of sessions", ["Signed in", "Role", "Since", ""], rows, { frame: "tall", table: "cards" }));
}

function endButton(name, path, owner) {
  const end = element("button", { type: "button", class: "small", "aria-label": `End: ${name}` }, "End");
  end.addEventListener("click", () => make("staff-link", async () => {
    await call("DELETE", path);
    await showSessions(owner);
  }));
  return end;
}
