// What several of the owner's pages are made of: a name with a bar, a table that scrolls in its place.
import { breakable, element } from "./dom.js";

export function bar(name, value, most, figure) {
  const meter = element("meter", { min: 0, max: most, value, "aria-label": name });
  return element("div", { class: "bar" }, element("span", { dir: "auto" }, ...breakable(name)), meter, element("span", {}, figure));
}

// `rows`: a heading and cells each, where a cell is text or an element; `more`: classes of the frame and of the table.
export function table(label, heads, rows, more = {}) {
  const head = element("tr", {}, ...heads.map((text) => (text ? element("th", { scope: "col" }, text) : element("td"))));
  const body = rows.map(([name, ...cells]) => element("tr", {}, element("th", { scope: "row", dir: "auto" }, name), ...cells.map((cell) => element("td", {}, cell))));
  const made = element("table", { class: more.table ?? "" }, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { class: `scroll ${more.frame ?? ""}`, tabindex: "0", role: "region", "aria-label": label }, made);
}
