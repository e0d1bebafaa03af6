// Elements are made from text only: nothing that was imported is ever parsed as HTML.

export const at = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

export function notice(text) {
  const place = at("notice");
  if (place.textContent === (text ?? "")) return; // the same words again would be read out again
  place.textContent = text ?? "";
  place.hidden = !text;
}

// Names such as card_payment_fee_charged are broken between their words, not inside one.
export function breakable(name) {
  return name.split(/(?<=[_/.-])(?=[^_/.-])/u).flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
}
