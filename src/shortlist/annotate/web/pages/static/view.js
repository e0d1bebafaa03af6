// What an annotator sees: the item, the buttons, the words around them.
import { at, breakable, element } from "./dom.js";
import { count } from "./figures.js";
import { essence, makeItem, play, watchEnd } from "./item.js";
import { keyOf, shortcut } from "./keys.js";
import { identity } from "./questions.js";
import { keysAnswer, markShortcuts } from "./shortcuts.js";
import { say } from "./words.js";
import { addLens, forget } from "./zoom.js";

const LONG = 20; // characters: names beyond this get wide buttons
const MANY = 12; // answers: beyond this they stand in columns
const ABOUT_ITEM = ["skip", "note"]; // of no use where there is none
const SHOWN_MS = 1300; // how long a decision stands there after it was made

const staged = new Map(); // a question's identity -> its item, loaded before it is shown

export function stage(questions) {
  const wanted = new Map(questions.map((question) => [identity(question), question.item]));
  for (const [key, item] of wanted) if (item && !staged.has(key)) staged.set(key, makeItem(item));
  for (const key of staged.keys()) if (!wanted.has(key)) staged.delete(key);
}

export function showQuestion(question, choose) {
  const hadFocus = at("panel").contains(document.activeElement);
  const { shortlist } = question;
  const item = staged.get(identity(question)) ?? makeItem(question.item);
  forget();
  at("item").replaceChildren(item);
  addLens();
  watchEnd(at("item"));
  at("choices").replaceChildren(...shortlist.map((choice, place) => makeButton(choice, place, choose)));
  at("choices").classList.toggle("long", shortlist.some((one) => one.description || one.name.length > LONG));
  at("choices").classList.toggle("many", shortlist.length > MANY);
  at("none").hidden = !shortlist.length;
  markShortcuts();
  idle(false);
  at("answers").hidden = false;
  // an item that comes back after None would look as if the key had done nothing
  at("again").hidden = !question.again;
  // the button that had the focus is gone: give it to the item, so that Tab goes on from there
  if (hadFocus && !at("tools").contains(document.activeElement)) at("item").focus({ preventScroll: true });
  at("announce").textContent = announcement(question);
  play(at("item"));
  return essence(item);
}

// After a list longer than the screen, the next item would be out of sight. Called within a frame: it makes the browser lay
// the page out, which the frame does anyway; before, with a long list, it was done twice.
export function toTop() {
  scrollTo(0, 0);
  at("choices").scrollTop = 0;
  markMore();
}

// Whether answers are out of sight below.
function markMore() {
  const list = at("choices");
  list.classList.toggle("more", list.scrollHeight - list.clientHeight - list.scrollTop > 8);
}

export function watchMore() {
  at("choices").addEventListener("scroll", markMore, { passive: true });
  new ResizeObserver(markMore).observe(at("choices"));
}

export function showBroken(question) {
  staged.delete(identity(question));
  const what = say(question.item.kind === "audio" ? "no_sound" : "no_picture");
  at("item").replaceChildren(element("div", { class: "state" }, element("p", {}, `${what} ${say("trying")}`)));
}

function makeButton(choice, place, choose) {
  const key = keyOf(place);
  const made = element("button", { type: "button" });
  if (key) {
    made.dataset.shortcut = shortcut(key);
    made.append(element("kbd", {}, key), " ");
  }
  made.append(element("span", { dir: "auto" }, ...breakable(choice.name)));
  if (choice.description) made.append(element("small", { dir: "auto" }, choice.description));
  made.addEventListener("click", () => choose(choice.class, choice.name));
  return made;
}

// For screen readers: what has changed on the page.
function announcement({ item, shortlist, again }) {
  const what = item.kind === "text" ? item.text.slice(0, 500) : say(item.kind === "audio" ? "new_sound" : "new_picture");
  const key = (name) => (keysAnswer() && name !== null ? `${name} ` : "");
  const names = shortlist.map((choice, place) => key(keyOf(place)) + choice.name);
  const offer = names.length ? `${names.join(", ")}, ${key("0")}${say("none")}.` : say("type_it");
  return `${again ? `${at("again").textContent} ` : ""}${what}. ${offer}`;
}

// Whether there is nothing to do: no room is kept for answers then.
function idle(now) {
  document.querySelector("main").classList.toggle("idle", now);
  for (const id of ABOUT_ITEM) at(id).hidden = now;
}

// Instead of a question: what is the matter, and a next step. `actions`: [words, what it does] each.
export function showState(name, { sign = "", tone = "", actions = [] } = {}) {
  const [title, text] = [say(name), sign ? say(`${name}_text`) : ""];
  const words = `${title} ${text}`.trim();
  if (at("announce").textContent === words) return; // the same words again would be read out again
  const hadFocus = at("panel").contains(document.activeElement);
  forget();
  idle(Boolean(sign));
  at("answers").hidden = true;
  const made = element("div", { class: "state" });
  if (sign) made.append(element("span", { class: `sign ${tone}`, "aria-hidden": "true" }, sign));
  made.append(sign ? element("h2", {}, title) : element("p", {}, title), " ");
  if (text) made.append(element("p", {}, text));
  for (const [label, act] of actions) {
    const button = element("button", { type: "button", class: "primary" }, label);
    button.addEventListener("click", act);
    made.append(button);
  }
  at("item").replaceChildren(made);
  at("announce").textContent = words;
  if (hadFocus) at("item").focus({ preventScroll: true });
}

// Nobody is signed in: nothing to press but the way back in.
export function showSignedOut() {
  showState("signed_out", { sign: "→", actions: [[say("sign_in"), () => location.assign("/join")]] });
  at("menu").hidePopover();
  for (const id of ["tools", "more", "bar"]) at(id).hidden = true;
  for (const id of ["progress", "who"]) at(id).textContent = "";
}

export function showProgress({ done, total }, mine, perMinute) {
  at("bar").max = Math.max(total, 1);
  at("bar").value = done;
  // "done", not "answered": None that is asked again and gold items are answers, too, but do not settle an item
  const parts = total ? [say("done", { done: count(done), total: count(total) })] : [];
  if (mine) parts.push(say("mine", { count: count(mine) }));
  if (perMinute !== null) parts.push(say("pace", { rate: perMinute }));
  at("progress").textContent = parts.join(" · ");
}

let fading = null;

// What was decided stands in the item's corner for a moment, while the next item is there already. It fades only at the
// end: something that moves all the time would be drawn again and again beside the next item.
export function showTaken(words) {
  clearTimeout(fading);
  at("taken").textContent = `✓ ${words}`;
  at("taken").classList.add("fresh");
  fading = setTimeout(() => at("taken").classList.remove("fresh"), SHOWN_MS);
}

let toastTimer = null;

export function toast(words, milliseconds = 2000) {
  clearTimeout(toastTimer);
  at("toast").textContent = words;
  at("toast").hidden = false;
  toastTimer = setTimeout(() => (at("toast").hidden = true), milliseconds);
}

// A key or click that was not taken.
export function showDropped() {
  toast(say("too_quick"));
  at("item").animate({ outline: ["4px solid var(--warn)", "4px solid transparent"] }, 500);
}
