// What annotators read before the first question, and on demand. Text only; addresses in it become links.
import { at, element } from "./dom.js";
import { keep, LONG, recall } from "./storage.js";
import { say } from "./words.js";

const LINK = /(https?:\/\/[^\s<>"]*[^\s<>".,;:!?'()[\]])/u; // a full stop after an address is not part of it
const EXAMPLE = 80; // characters of a text

export const reading = () => at("instructions").open;

const linked = (text) =>
  text.split(LINK).map((part, place) => {
    return place % 2 ? element("a", { href: part, target: "_blank", rel: "noopener noreferrer" }, part) : part;
  });

function write(text) {
  const paragraphs = text ? text.split(/\n\s*\n/u) : [];
  at("instructions-text").replaceChildren(...paragraphs.map((part) => element("p", { dir: "auto" }, ...linked(part))));
}

// Resolves when it has been read.
function open() {
  const dialog = at("instructions");
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(".body").scrollTop = 0;
  return new Promise((read) => dialog.addEventListener("close", read, { once: true }));
}

const shortened = (text) => (text.length > EXAMPLE ? `${text.slice(0, EXAMPLE).trimEnd()} …` : text);

// What the classes of the list mean, with the latest items that were taken for each.
function describe(shortlist, history) {
  return shortlist.flatMap((choice) => {
    const mine = history.taken(choice.class).map((item) =>
      item.media && item.kind === "image" ? element("img", { src: item.media, alt: "" }) : element("q", { dir: "auto" }, shortened(item.text ?? "")),
    );
    const words = choice.description ? [element("dd", { dir: "auto" }, choice.description)] : [];
    const examples = mine.length ? [element("dd", {}, `${say("your_last")} `, ...mine.flatMap((one) => [one, " "]))] : [];
    return [element("dt", { dir: "auto" }, choice.name), ...words, ...examples];
  });
}

export function showHelp(instructions, question, history) {
  const shortlist = question?.shortlist ?? [];
  at("instructions-heading").textContent = say("help");
  write(instructions);
  const described = describe(shortlist, history);
  at("meanings").hidden = !described.some((one) => one.localName === "dd"); // names alone say nothing new
  at("classes").replaceChildren(...described);
  at("keymap").hidden = false;
  return open();
}

// Once per browser, and again after a change.
export async function introduce({ instructions, outbox }) {
  const name = `shortlist-instructions-${outbox}`;
  if (!instructions || recall(LONG, name) === instructions) return;
  at("instructions-heading").textContent = say("instructions");
  write(instructions);
  await open();
  keep(LONG, name, instructions);
}
