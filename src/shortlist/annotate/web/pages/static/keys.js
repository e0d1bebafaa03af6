// Which key is which button: 1 to 9, then letters in the order of the alphabet, then the same letters with Shift.
// 0, S, Z, ?, / and ! are taken: None, skip (with Shift: why), undo, help, another class, a note.

const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"].filter((letter) => letter !== "s" && letter !== "z");
const DIGITS = [..."123456789"];
const SHIFT = "⇧";

// What is on the n-th button; null where there are no keys left (a click or Tab and Enter still work).
const KEYS = [...DIGITS, ...LETTERS.map((k) => k.toUpperCase()), ...LETTERS.map((k) => SHIFT + k.toUpperCase())];
export const keyOf = (place) => KEYS[place] ?? null;

// The same in the words of aria-keyshortcuts.
export const shortcut = (key) => key.replace(SHIFT, "Shift+").toLowerCase().replace("shift", "Shift");

// A key press as it is written on the buttons ("1", "0", "A", "⇧A", "?", "/", "!"), or null if it has no meaning here.
export function pressed(event) {
  if (event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return null;
  if (["?", "/", "!"].includes(event.key)) return event.key; // on some keyboards they are above a digit
  // by place for digits: on some keyboards they need Shift, and people press them without. Not so on the number pad:
  // without Num Lock its keys are arrows
  const digit = /^Digit(\d)$/.exec(event.code)?.[1] ?? (/^\d$/.test(event.key) ? event.key : null);
  if (digit) return digit;
  const letter = latin(event);
  // Caps Lock must not matter, so Shift decides, not the case
  return letter && (event.shiftKey ? SHIFT : "") + letter.toUpperCase();
}

// Keyboards of other alphabets (Greek, Cyrillic, ...) have the Latin letters at the usual places, unwritten.
function latin({ key, code }) {
  if (/^[a-z]$/i.test(key)) return key;
  return /^\p{L}$/u.test(key) ? (/^Key([A-Z])$/.exec(code)?.[1] ?? null) : null;
}
