// The table of annotators. Rows are kept and only their figures change, so that a button does not lose the focus.
import { ApiError, call } from "./api.js";
import { at, element } from "./dom.js";
import { count, outOf, percent, seconds } from "./figures.js";

const rows = new Map();

export function showPeople(people, link, agreed = new Map()) {
  for (const who of people) {
    if (!rows.has(who.id)) {
      rows.set(who.id, makeRow(who, link));
      at("people").append(rows.get(who.id).row);
    }
    fill(rows.get(who.id), who, agreed.get(who.id) ?? null);
  }
  at("nobody").hidden = people.length > 0;
}

function fill({ row, cells, button, remove, undo }, who, agree) {
  const figures = [count(who.answers), percent(who.none_share), count(who.skips), seconds(who.median_seconds)];
  const hidden = who.gold - who.gold_shown;
  const gold = [count(who.gold), outOf(who.slips, who.gold_shown), outOf(who.misses, who.gold_shown), outOf(who.strays, hidden)];
  [...figures, ...gold, percent(agree)].forEach((text, place) => {
    if (cells[place].textContent !== text) cells[place].textContent = text;
  });
  row.classList.toggle("gone", !who.active);
  name(button, who.active ? "New link" : "Invite again", who);
  const held = document.activeElement;
  remove.hidden = !who.active;
  undo.hidden = who.active || !who.answers;
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
  const cells = Array.from({ length: 9 }, () => element("td"));
  const button = makeButton("New link", who);
  button.addEventListener("click", () => {
    act(() => call("POST", `/annotators/${who.id}/invite`), (made) => link(who.name, made));
  });
  const remove = makeButton("Remove", who);
  remove.addEventListener("click", () => {
    if (!confirm(`Sign ${who.name} out for good? Their answers stay.`)) return;
    act(() => call("DELETE", `/annotators/${who.id}`), () => (at("link").textContent = `${who.name} is signed out.`));
  });
  const undo = makeButton("Take answers back", who);
  undo.addEventListener("click", () => {
    if (!confirm(`Take back all answers of ${who.name}? Others will be asked instead.`)) return;
    const done = ({ answers }) => (at("link").textContent = `Answers of ${who.name} taken back: ${count(answers)}.`);
    act(() => call("DELETE", `/annotators/${who.id}/answers`), done);
  });
  const label = element("span", { class: "name", title: who.name }, who.name);
  const actions = element("td", {}, button, " ", remove, " ", undo);
  const row = element("tr", {}, element("th", { scope: "row", dir: "auto" }, label), ...cells, actions);
  return { row, cells, button, remove, undo };
}

async function act(request, done) {
  try {
    done(await request());
  } catch (error) {
    at("link").textContent = error instanceof ApiError ? error.message : "No connection: nothing was changed.";
  }
}
