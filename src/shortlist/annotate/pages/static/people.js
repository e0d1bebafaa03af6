// The table of annotators. Rows are kept and only their figures change, so that a button does not lose the focus.
import { ApiError, call } from "./api.js";
import { at, element } from "./dom.js";
import { count, of, percent, seconds } from "./figures.js";

const rows = new Map();

export function showPeople(people, link) {
  for (const who of people) {
    if (!rows.has(who.id)) {
      rows.set(who.id, makeRow(who, link));
      at("people").append(rows.get(who.id).row);
    }
    fill(rows.get(who.id), who);
  }
  at("nobody").hidden = people.length > 0;
}

function fill({ row, cells, button, remove, undo }, who) {
  const figures = [count(who.answers), percent(who.none_share), count(who.skips), seconds(who.median_seconds)];
  const gold = [count(who.gold), of(who.slips, who.gold), of(who.misses, who.gold_shown)];
  [...figures, ...gold].forEach((text, place) => {
    if (cells[place].textContent !== text) cells[place].textContent = text;
  });
  row.classList.toggle("gone", !who.active);
  button.textContent = who.active ? "New link" : "Invite again";
  remove.hidden = !who.active;
  undo.hidden = who.active || !who.answers;
}

function makeRow(who, link) {
  const cells = Array.from({ length: 7 }, () => element("td"));
  const button = element("button", { type: "button", class: "small", "aria-label": `New link for ${who.name}` });
  button.addEventListener("click", () => {
    act(() => call("POST", `/annotators/${who.id}/invite`), (made) => link(who.name, made));
  });
  const remove = element("button", { type: "button", class: "small", "aria-label": `Remove ${who.name}` }, "Remove");
  remove.addEventListener("click", () => {
    if (!confirm(`Sign ${who.name} out for good? Their answers stay.`)) return;
    act(() => call("DELETE", `/annotators/${who.id}`), () => (at("link").textContent = `${who.name} is signed out.`));
  });
  const undo = element("button", { type: "button", class: "small" }, "Take answers back");
  undo.setAttribute("aria-label", `Take the answers of ${who.name} back`);
  undo.addEventListener("click", () => {
    if (!confirm(`Take all answers of ${who.name} back? What they answered is asked again, of others.`)) return;
    const done = ({ answers }) => (at("link").textContent = `Answers of ${who.name} taken back: ${count(answers)}.`);
    act(() => call("DELETE", `/annotators/${who.id}/answers`), done);
  });
  const actions = element("td", {}, button, " ", remove, " ", undo);
  const row = element("tr", {}, element("th", { scope: "row", dir: "auto" }, who.name), ...cells, actions);
  return { row, cells, button, remove, undo };
}

async function act(request, done) {
  try {
    done(await request());
  } catch (error) {
    at("link").textContent = error instanceof ApiError ? error.message : "No connection: nothing was changed.";
  }
}
