// Asks before something is done: yes or no, a line of text, or one of a list. Resolves with what was said, null if nothing.
import { at, element } from "./dom.js";

at("ask-cancel").addEventListener("click", () => at("ask").close(""));

// `label`: of a field, which holds `value`; with `options` ([value, words] each) it is a list. `danger`: something is lost.
export function ask({ title, words, go, label = null, value = "", options = null, danger = false }) {
  at("ask-title").textContent = title;
  at("ask-words").textContent = words;
  at("ask-go").textContent = go;
  at("ask-go").className = danger ? "danger" : "primary";
  const field = options ? element("select", { id: "ask-value", required: "" }) : element("input", { id: "ask-value", maxlength: "500", dir: "auto" });
  if (options) field.append(element("option", { value: "" }, "Choose one"), ...options.map(([key, name]) => element("option", { value: key }, name)));
  field.value = value;
  at("ask-field").replaceChildren(...(label === null ? [] : [element("label", { for: "ask-value" }, label), field]));
  const dialog = at("ask");
  dialog.returnValue = "";
  dialog.showModal();
  if (label !== null) field.focus();
  else (danger ? at("ask-cancel") : at("ask-go")).focus(); // a key that bounces loses nothing
  if (!options && label !== null) field.select();
  return new Promise((done) =>
    dialog.addEventListener("close", () => done(dialog.returnValue !== "go" ? null : label === null ? true : field.value.trim()), { once: true }),
  );
}
