// What annotators read before the first question, and on demand. Text only; addresses in it become links.
import { at, element } from "./dom.js";

const LINK = /(https?:\/\/[^\s<>"]*[^\s<>".,;:!?'()[\]])/u; // a full stop after an address is not part of it

export const reading = () => at("instructions").open;

const linked = (text) =>
  text.split(LINK).map((part, place) => {
    return place % 2 ? element("a", { href: part, target: "_blank", rel: "noopener noreferrer" }, part) : part;
  });

export function writeInstructions(text) {
  const paragraphs = text.split(/\n\s*\n/u);
  at("instructions-text").replaceChildren(...paragraphs.map((part) => element("p", { dir: "auto" }, ...linked(part))));
}

// Resolves when they have been read.
export function showInstructions(text) {
  const dialog = at("instructions");
  writeInstructions(text);
  dialog.showModal();
  at("instructions-text").scrollTop = 0;
  return new Promise((read) => dialog.addEventListener("close", read, { once: true }));
}

// Once per browser, and again after a change.
export async function introduce({ instructions, outbox }) {
  const name = `shortlist-instructions-${outbox}`;
  at("instruct").hidden = !instructions;
  if (!instructions || stored(name) === instructions) return;
  await showInstructions(instructions);
  try {
    localStorage.setItem(name, instructions);
  } catch {
    // no storage: they are shown at every start
  }
}

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
