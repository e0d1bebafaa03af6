// The table of annotators. Rows are kept and only their figures change, so that a button does not lose the focus; they
// are put in order when somebody asks for it, not while they are read.
import { call, failure } from "./api.js";
import { ask } from "./ask.js";
import { at, element } from "./dom.js";
import { count, outOf, percent, seconds } from "./figures.js";

const rows = new Map();
let renew = () => {};

export function showPeople(people, link, agreed = new Map()) {
  for (const who of people) {
    if (!rows.has(who.id)) {
      rows.set(who.id, makeRow(who, link));
      at("people").append(rows.get(who.id).row);
    }
    fill(rows.get(who.id), who, agreed.get(who.id) ?? null);
  }
  const there = new Set(people.map(({ id }) => id));
  for (const [id, { row }] of rows) {
    if (there.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  at("nobody").hidden = people.length > 0;
  at("people-table").hidden = !people.length;
  search();
}

// Every heading but the last, that of the buttons, sorts by its column: figures from the most, names from A.
export function watchPeople(refresh) {
  renew = refresh;
  at("people-search").addEventListener("input", search);
  const heads = [...at("people-head").children].slice(0, -1);
  heads.forEach((head, place) => {
    const made = element("button", { type: "button", class: "quiet small" }, head.textContent);
    head.replaceChildren(made);
    made.addEventListener("click", () => {
      const down = head.ariaSort === null ? place > 0 : head.ariaSort === "ascending";
      for (const other of heads) other.ariaSort = other === head ? (down ? "descending" : "ascending") : null;
      const order = (one, other) => (place ? one.values[place] - other.values[place] : one.values[0].localeCompare(other.values[0]));
      at("people").append(...[...rows.values()].sort((one, other) => (down ? -1 : 1) * order(one, other)).map(({ row }) => row));
    });
  });
}

function search() {
  const wanted = at("people-search").value.trim().toLowerCase();
  for (const { row, values } of rows.values()) row.hidden = !values[0].toLowerCase().includes(wanted);
}

function fill(made, who, agree) {
  const { row, cells, button, remove, undo, erase } = made;
  const figures = [count(who.answers), percent(who.none_share), count(who.skips), seconds(who.median_seconds)];
  const hidden = who.gold - who.gold_shown;
  const gold = [count(who.gold), outOf(who.slips, who.gold_shown), outOf(who.misses, who.gold_shown), outOf(who.strays, hidden)];
  const shares = [[who.slips, who.gold_shown], [who.misses, who.gold_shown], [who.strays, hidden]].map(([some, all]) => (all ? some / all : -1));
  made.values = [who.name, who.answers, who.none_share ?? -1, who.skips, who.median_seconds ?? -1, who.gold, ...shares, agree ?? -1];
  [...figures, ...gold, percent(agree)].forEach((text, place) => {
    if (cells[place].textContent !== text) cells[place].textContent = text;
  });
  row.classList.toggle("gone", !who.active);
  name(button, who.active ? "New link" : "Invite again", who);
  const held = document.activeElement;
  remove.hidden = !who.active;
  undo.hidden = who.active || !who.answers;
  erase.hidden = who.active;
  if (held === remove && remove.hidden || held === undo && undo.hidden) button.focus(); // or the focus would be lost
}

// The accessible name begins with the visible words, so that voice control finds it; then comes the person's name.
function name(button, words, who) {
  if (button.textContent === words) return;
  button.textContent = words;
  button.setAttribute("aria-label", `${words}: ${who.name}`);
}

function makeButton(words, who) {
  const button = element("button", { type: "button", class: "small" });
  name(button, words, who);
  return button;
}

function makeRow(who, link) {
  const cells = Array.from({ length: 9 }, () => element("td", { class: "number" }));
  const button = makeButton("New link", who);
  button.addEventListener("click", () => {
    act(() => call("POST", `/annotators/${who.id}/invite`), (made) => link(who.name, made));
  });
  const remove = makeButton("Remove", who);
  remove.addEventListener("click", async () => {
    if (!(await ask({ title: `Remove ${who.name}?`, words: "They are signed out for good. Their answers stay.", go: "Remove", danger: true }))) return;
    act(() => call("DELETE", `/annotators/${who.id}`), () => (at("link").textContent = `${who.name} is signed out.`));
  });
  const undo = makeButton("Take answers back", who);
  undo.addEventListener("click", async () => {
    if (!(await ask({ title: `Take back all answers of ${who.name}?`, words: "Others will be asked instead.", go: "Take back", danger: true }))) return;
    const done = ({ answers }) => (at("link").textContent = `Answers of ${who.name} taken back: ${count(answers)}.`);
    act(() => call("DELETE", `/annotators/${who.id}/answers`), done);
  });
  const erase = makeButton("Erase", who);
  erase.classList.add("danger");
  erase.addEventListener("click", async () => {
    if (!(await ask({ title: `Erase ${who.name}?`, words: "They and everything they said are gone for good. Others will be asked instead.", go: "Erase", danger: true }))) return;
    act(() => call("DELETE", `/people/${who.id}/data`), () => (at("link").textContent = `${who.name} is erased.`));
  });
  const label = element("span", { class: "name", title: who.name }, who.name);
  const actions = element("td", { class: "owners" }, element("div", { class: "actions" }, button, remove, undo, erase));
  const row = element("tr", {}, element("th", { scope: "row", dir: "auto" }, label), ...cells, actions);
  return { row, cells, button, remove, undo, erase };
}

async function act(request, done) {
  try {
    done(await request());
    await renew();
  } catch (error) {
    at("link").textContent = failure(error, "nothing was changed");
  }
}
