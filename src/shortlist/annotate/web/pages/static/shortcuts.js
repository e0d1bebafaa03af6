// Single keys can be turned off: people who dictate, or press keys by accident, would answer unintentionally (WCAG
// 2.1.4). Remembered per browser, not per project: it depends on the person.
import { at } from "./dom.js";
import { keep, LONG, recall } from "./storage.js";

const NAME = "shortlist-keys";

export const keysAnswer = () => at("keys").checked;

// Buttons name their key in `data-shortcut`; screen readers are told of it only while it works.
export function markShortcuts() {
  document.body.classList.toggle("keyless", !keysAnswer());
  for (const button of document.querySelectorAll("[data-shortcut]")) {
    if (keysAnswer()) button.setAttribute("aria-keyshortcuts", button.dataset.shortcut);
    else button.removeAttribute("aria-keyshortcuts");
  }
}

export function loadShortcuts() {
  at("keys").checked = recall(LONG, NAME) !== "off";
  markShortcuts();
}

export function saveShortcuts() {
  keep(LONG, NAME, keysAnswer() ? "on" : "off");
  markShortcuts();
}
