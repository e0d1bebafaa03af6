// How often each class was picked: requested only while somebody looks, since every answer is counted.
import { call } from "./api.js";
import { at, element } from "./dom.js";
import { count, percent } from "./figures.js";

export async function refreshCounts() {
  if (!at("counts").open) return;
  const { names, answers, none } = await call("GET", "/classes/counts");
  const all = answers.reduce((sum, one) => sum + one, none);
  const order = [...names.keys()].sort((one, other) => answers[other] - answers[one]);
  at("classes").replaceChildren(
    row("None", none, all),
    ...order.map((k) => row(names[k], answers[k], all)),
  );
}

function row(name, picked, all) {
  const share = all ? picked / all : null;
  return element("tr", {}, element("th", { scope: "row", dir: "auto" }, name), element("td", {}, count(picked)), element("td", {}, percent(share)));
}
