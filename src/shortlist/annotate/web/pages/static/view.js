// What an annotator sees: the item, the buttons, the words around them.
import { at, element } from "./dom.js";
import { count } from "./figures.js";
import { keyOf, shortcut } from "./keys.js";
import { keysAnswer, markShortcuts } from "./shortcuts.js";

const TINY = 64; // pixels: smaller pictures are shown as squares, not as a blur

const LONG = 20; // characters: names beyond this get wide buttons

const staged = new Map(); // question id -> its item, loaded before it is shown

export function stage(questions) {
  for (const { id, item } of questions) if (item && !staged.has(id)) staged.set(id, makeItem(item));
  const wanted = new Set(questions.map(({ id }) => id));
  for (const id of staged.keys()) if (!wanted.has(id)) staged.delete(id);
}

function makeItem(item) {
  if (item.kind === "text") return element("p", { class: "text", dir: "auto", tabindex: 0 }, item.text);
  if (item.kind === "audio") {
    return element("audio", { src: item.media, controls: "", preload: "auto", "aria-label": "The sound to label" });
  }
  const image = element("img", { src: item.media, alt: "The item to label", decoding: "async" });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalHeight < TINY));
  return image;
}

export function showQuestion(question, choose) {
  const hadFocus = at("answers").contains(document.activeElement);
  const item = staged.get(question.id) ?? makeItem(question.item);
  at("item").replaceChildren(item);
  at("choices").replaceChildren(...question.shortlist.map((choice, place) => makeButton(choice, place, choose)));
  at("choices").classList.toggle("long", question.shortlist.some((one) => one.description || one.name.length > LONG));
  at("none").hidden = !question.shortlist.length;
  markShortcuts();
  at("answers").hidden = false;
  // an item that comes back after None would look as if the key had done nothing
  at("again").hidden = !question.again;
  // the button that had the focus is gone: give it to the item, so that Tab goes on from there
  if (hadFocus) at("item").focus({ preventScroll: true });
  at("announce").textContent = announcement(question);
  if (item instanceof HTMLAudioElement) item.play().catch(() => {}); // browsers may want a click first
  return item;
}

export function showBroken(question) {
  staged.delete(question.id);
  const what = question.item.kind === "audio" ? "This sound cannot be played." : "This picture cannot be shown.";
  at("item").replaceChildren(element("p", {}, `${what} Trying again; you can skip it.`));
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
  made.addEventListener("click", () => choose(choice.class));
  return made;
}

// Names such as card_payment_fee_charged are broken between their words, not inside one.
function breakable(name) {
  return name.split(/(?<=[_/.-])(?=[^_/.-])/u).flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
}

// For screen readers: what has changed on the page.
function announcement({ item, shortlist, again }) {
  const what = item.kind === "text" ? item.text.slice(0, 500) : item.kind === "audio" ? "A new sound" : "A new picture";
  const key = (name) => (keysAnswer() && name !== null ? `${name} ` : "");
  const names = shortlist.map((choice, place) => key(keyOf(place)) + choice.name);
  const offer = names.length ? `${names.join(", ")}, ${key("0")}none of these.` : "Type its class.";
  return `${again ? `${at("again").textContent} ` : ""}${what}. ${offer}`;
}

// Nobody is signed in: only a message, nothing to press.
export function showSignedOut(text) {
  showMessage(text);
  for (const id of ["tools", "sign-out", "bar"]) at(id).hidden = true;
  for (const id of ["progress", "who"]) at(id).textContent = "";
}

export function showMessage(text) {
  if (at("announce").textContent === text) return; // the same words again would be read out again
  const hadFocus = at("answers").contains(document.activeElement);
  at("answers").hidden = true;
  at("item").replaceChildren(element("p", {}, text));
  at("announce").textContent = text;
  if (hadFocus) at("item").focus({ preventScroll: true });
}

export function showProgress({ done, total }, mine, perMinute) {
  at("bar").max = Math.max(total, 1);
  at("bar").value = done;
  // "done", not "answered": None that is asked again and gold items are answers, too, but do not settle an item
  const parts = total ? [`${count(done)} of ${count(total)} done`] : [];
  if (mine) parts.push(`${count(mine)} ${mine === 1 ? "answer" : "answers"} by you just now`);
  if (perMinute !== null) parts.push(`${perMinute} per minute`);
  at("progress").textContent = parts.join(" · ");
}

export function toggleSound() {
  const sound = at("item").querySelector("audio");
  if (!sound) return false;
  if (sound.paused) sound.play().catch(() => {});
  else sound.pause();
  return true;
}
