// A picture over the whole screen: wheel, pinch, click, + and - enlarge it; dragging and arrows move it; Esc ends it.
// Keys answer meanwhile; what is behind cannot be reached.
import { at, element } from "./dom.js";
import { say } from "./words.js";

const MOST = 12;
const STEP = 1.5;
const CLICK = 6; // pixels: less than this is a click, not a drag

let scale = 1;
let [x, y] = [0, 0];
const fingers = new Map();
let travelled = 0;

const picture = () => at("item").querySelector(".picture img");
const enlarged = () => at("item").classList.contains("large");

const button = (sign, name, act) => {
  const made = element("button", { type: "button", "aria-label": say(name) }, sign);
  made.addEventListener("click", act);
  return made;
};

export function addLens() {
  if (!picture()) return;
  const open = button("⤢", "enlarge", () => enlarge());
  open.dataset.shortcut = "+";
  const tools = [button("−", "smaller", () => zoom(1 / STEP)), button("+", "larger", () => zoom(STEP)), button("✕", "close", shrink)];
  at("item").append(element("div", { class: "lens" }, open, ...tools));
  reveal(false);
}

function reveal(large) {
  [...at("item").querySelectorAll(".lens button")].forEach((one, place) => (one.hidden = large === (place === 0)));
}

function open(large) {
  at("item").classList.toggle("large", large);
  for (const other of document.querySelectorAll("header, #panel")) other.inert = large;
  [scale, x, y] = [1, 0, 0];
  fingers.clear();
  draw();
  reveal(large);
}

function enlarge() {
  if (!picture() || enlarged()) return;
  open(true);
  at("item").querySelector(".lens button:last-child").focus();
}

function shrink() {
  if (!enlarged()) return;
  open(false);
  (at("item").querySelector(".lens button") ?? at("item")).focus({ preventScroll: true });
}

// The item has changed: the next one begins small.
export function forget() {
  if (enlarged()) open(false);
}

function draw() {
  const image = picture();
  if (!image) return;
  const [wide, high] = [(innerWidth * (scale - 1)) / 2, (innerHeight * (scale - 1)) / 2];
  [x, y] = [Math.min(Math.max(x, -wide), wide), Math.min(Math.max(y, -high), high)];
  image.style.transform = enlarged() ? `translate(${x}px, ${y}px) scale(${scale})` : "";
}

// By a factor, so that the given place of the screen stays where it is.
function zoom(factor, left = innerWidth / 2, top = innerHeight / 2) {
  const next = Math.min(Math.max(scale * factor, 1), MOST);
  const [fromX, fromY] = [left - innerWidth / 2, top - innerHeight / 2];
  x = fromX - ((fromX - x) * next) / scale;
  y = fromY - ((fromY - y) * next) / scale;
  scale = next;
  draw();
}

const MOVES = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// True where the key was meant for the picture.
export function zoomKey({ key }) {
  if (!picture()) return false;
  if (!enlarged()) {
    if (key !== "+") return false;
    enlarge();
  } else if (key === "Escape") shrink();
  else if (key === "+" || key === "-") zoom(key === "+" ? STEP : 1 / STEP);
  else if (key in MOVES) {
    [x, y] = [x + MOVES[key][0] * 80, y + MOVES[key][1] * 80];
    draw();
  } else return false;
  return true;
}

function apart() {
  const [one, other] = [...fingers.values()];
  return [Math.hypot(one.x - other.x, one.y - other.y), (one.x + other.x) / 2, (one.y + other.y) / 2];
}

export function watchZoom() {
  const stage = at("item");
  stage.addEventListener("wheel", (event) => {
    if (!enlarged()) return;
    event.preventDefault();
    zoom(STEP ** (-event.deltaY / 120), event.clientX, event.clientY);
  }, { passive: false });
  stage.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".picture img") || event.button) return;
    if (enlarged()) event.target.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    travelled = fingers.size > 1 ? CLICK : 0;
  });
  stage.addEventListener("pointermove", (event) => {
    const was = fingers.get(event.pointerId);
    if (!was) return;
    const before = fingers.size === 2 ? apart() : null;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    travelled += Math.hypot(event.clientX - was.x, event.clientY - was.y);
    if (!enlarged()) return;
    if (before) zoom(apart()[0] / before[0], before[1], before[2]);
    else [x, y] = [x + event.clientX - was.x, y + event.clientY - was.y];
    draw();
  });
  stage.addEventListener("pointerup", (event) => {
    if (!fingers.delete(event.pointerId) || travelled >= CLICK) return;
    if (!enlarged()) enlarge();
    else if (scale >= MOST) open(true);
    else zoom(2, event.clientX, event.clientY);
  });
  stage.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
}
