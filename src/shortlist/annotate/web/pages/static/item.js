// The item itself: a text that scrolls by key, a picture that is enlarged, a sound with a speed.
import { element } from "./dom.js";
import { say } from "./words.js";

const TINY = 64; // pixels: smaller pictures are shown as squares, not as a blur
const SHORT = 160; // characters: large letters up to here
const MEDIUM = 700;
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 2];

let speed = SPEEDS.indexOf(1); // stays from sound to sound

export function makeItem(item) {
  if (item.kind === "text") return makeText(item.text);
  return item.kind === "audio" ? makeSound(item.media) : makePicture(item.media);
}

// What has to be there before the item can be judged.
export const essence = (made) => made.querySelector("img, audio") ?? made;

const ends = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) target.closest(".text").classList.toggle("more", !isIntersecting);
});

function makeText(text) {
  const size = text.length <= SHORT ? "short" : text.length <= MEDIUM ? "medium" : "";
  return element("div", { class: `text ${size}`, tabindex: 0, dir: "auto" }, element("div", {}, text, element("i")));
}

// A fade says that there is more below. Once the text is on the page: before that its end is out of sight.
export function watchEnd(place) {
  const end = place.querySelector(".text i");
  if (end) ends.observe(end);
}

function makePicture(source) {
  const image = element("img", { src: source, alt: say("the_item"), decoding: "async", draggable: "false" });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalHeight < TINY));
  image.decode().catch(() => {}); // before it is shown; where that fails, showing it says so
  return element("div", { class: "picture" }, image);
}

function makeSound(source) {
  const sound = element("audio", { src: source, controls: "", preload: "auto", "aria-label": say("the_sound") });
  const buttons = [["−", "slower", "<", -1], ["+", "faster", ">", 1]].map(([sign, name, key, step]) => {
    const made = element("button", { type: "button", class: "small", "aria-label": say(name), "data-shortcut": key }, sign);
    made.addEventListener("click", () => changeSpeed(made.closest("#item"), step));
    return made;
  });
  const shown = element("output", {});
  const made = element("div", { class: "sound" }, sound, element("div", { class: "row" }, buttons[0], shown, buttons[1]));
  applySpeed(made);
  return made;
}

function applySpeed(place) {
  place.querySelector("audio").playbackRate = SPEEDS[speed];
  place.querySelector("output").textContent = `${SPEEDS[speed]}×`;
}

export function changeSpeed(place, step) {
  if (!place.querySelector("audio")) return false;
  speed = Math.min(Math.max(speed + step, 0), SPEEDS.length - 1);
  applySpeed(place);
  return true;
}

// Begins to play where the browser lets it; some want a click first.
export function play(place) {
  const sound = place.querySelector("audio");
  if (!sound) return;
  applySpeed(place);
  sound.play().catch(() => {});
}

export function toggleSound(place) {
  const sound = place.querySelector("audio");
  if (!sound) return false;
  if (sound.paused) play(place);
  else sound.pause();
  return true;
}

const STEPS = { ArrowDown: 0.15, ArrowUp: -0.15, PageDown: 0.85, PageUp: -0.85, " ": 0.85 };

// False where there is nothing to scroll.
export function scrollText(place, { key, shiftKey }) {
  const text = place.querySelector(".text");
  if (!text || !(key in STEPS) || text.scrollHeight <= text.clientHeight) return false;
  text.scrollBy(0, STEPS[key] * text.clientHeight * (key === " " && shiftKey ? -1 : 1));
  return true;
}
