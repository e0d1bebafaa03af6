// What is said beside the answers: a note about the item, the reason for a skip. Both wait in the outbox as answers do.
import { at } from "./dom.js";

const OFFERED_MS = 8000; // how long a reason is asked for
const UNSEEN = /[^\P{Cc}\n\t]|\p{Cs}/gu; // control characters, from a paste: the server refuses them

let timer = null;
let skipped = null;

// `send`: puts an entry into the outbox.
export function watchReasons(send) {
  for (const button of at("why").querySelectorAll("button")) {
    button.addEventListener("click", () => {
      send({ path: "/skips/reason", body: { ...skipped, reason: button.value } });
      hideReasons();
    });
  }
  at("why").addEventListener("focusin", () => clearTimeout(timer)); // nobody is hurried
  at("why").addEventListener("keydown", (event) => {
    event.stopPropagation(); // a digit here is no answer
    if (event.key === "Escape") hideReasons();
  });
}

// Whoever skips goes on at once; why is asked beside it, and need not be said.
export function offerReasons({ id, attempt }) {
  skipped = { question: id, attempt };
  at("why").hidden = false;
  clearTimeout(timer);
  timer = setTimeout(hideReasons, OFFERED_MS);
}

export function hideReasons() {
  clearTimeout(timer);
  const hadFocus = at("why").contains(document.activeElement);
  at("why").hidden = true;
  if (hadFocus) at("item").focus({ preventScroll: true });
}

export function chooseReason() {
  if (!at("why").hidden) at("why").querySelector("button").focus();
}

// No button of the form: Enter in a form presses its first.
at("note-cancel").addEventListener("click", () => at("noting").close());

export const writing = () => at("noting").open;

// Resolves with the note, or null.
export function writeNote() {
  const dialog = at("noting");
  at("note-text").value = "";
  at("note-flag").checked = false;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) =>
    dialog.addEventListener("close", () => {
      const [text, flag] = [at("note-text").value.replace(UNSEEN, " ").trim(), at("note-flag").checked];
      done(dialog.returnValue === "save" && (text || flag) ? { text, kind: flag ? "flag" : "comment" } : null);
    }, { once: true }),
  );
}
