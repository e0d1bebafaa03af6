// Overview: how much is done, how good it is, what it cost, how long to go.
import { call } from "./api.js";
import { bars, curve } from "./curve.js";
import { at, element } from "./dom.js";
import { count, hours, percent, seconds } from "./figures.js";

const SLOW_MS = 30_000;
const MANY = 5000; // answers: fewer are counted anew whenever there is another one
const FULL_HOUR = 3300; // seconds: what began minutes ago is told by its minutes
let looked = 0;
let counted = 0;

const figure = (name, value, more = "") => element("div", {}, element("dt", {}, name), element("dd", {}, value), ...(more ? [element("dd", { class: "more" }, more)] : []));

const lately = (over) => (over && over < FULL_HOUR ? hours(Math.max(over, 60) / 3600).replace(/^1 min$/u, "minute") : "hour");
const classes = (size) => (size === 1 ? "1 class" : `${size} classes`);

export function start({ owner }) {
  return async (status, entered) => {
    const { done, total } = status.progress;
    at("bar").max = Math.max(total, 1);
    at("bar").value = done;
    const { score, agreement } = status;
    const known = status.known ? `, ${count(status.known)} known or corrected` : "";
    const asked = total > status.items ? `, ${count(done)} of ${count(total)} questions settled` : ""; // of several people each
    const rows = [figure("Items done", count(status.items_done), `of ${count(status.items)}${known}${asked}`)];
    if (score?.early) rows.push(figure("Model right", "–", `too early: ${count(score.items)} sampled ${score.items === 1 ? "item is" : "items are"} answered`));
    else if (score) rows.push(figure("Model right", percent(score.accuracy), `${percent(score.low)} to ${percent(score.high)}, ${count(score.items)} sampled items`));
    if (score && !score.early && score.questions_for_a_point !== null) rows.push(figure("One point more", `≈ ${count(Number(score.questions_for_a_point.toPrecision(1)))}`, "questions"));
    rows.push(figure("Answers in all", count(status.answers), `${count(status.skips)} skipped`));
    rows.push(figure("Time spent", hours(status.hours), status.answers && status.hours !== null ? `${((3600 * status.hours) / status.answers).toFixed(1)} s an answer` : ""));
    rows.push(figure("None share", percent(status.none_share)));
    rows.push(figure("Agreement", percent(agreement.share), agreement.pairs ? `${count(agreement.pairs)} pairs` : "nobody answered the same items"));
    rows.push(figure("Classes", count(status.classes)));
    at("figures").replaceChildren(...rows);
    // None that is asked again and gold items take time, too, and bring the end no nearer
    const left = done && status.hours !== null ? ((total - done) * status.hours) / done : null;
    at("to-go").textContent = total > done ? `${count(status.items - status.items_done)} items to go${left === null ? "" : `, about ${hours(left)} of work`}` : total ? "All answers are in." : "";
    showCurve(status);
    at("sizes").hidden = !status.seconds_by_size.length;
    const most = Math.max(...status.seconds_by_size.map((one) => one.median_seconds));
    at("seconds").replaceChildren(...status.seconds_by_size.map(({ size, median_seconds: s }) => element("div", { class: "bar" }, element("span", {}, classes(size)), element("meter", { min: 0, max: most, value: s, "aria-label": classes(size) }), element("span", {}, `${seconds(s)} s`))));
    if (entered || Date.now() - looked > SLOW_MS || (status.answers < MANY && status.answers !== counted)) {
      [looked, counted] = [Date.now(), status.answers];
      await showWork(total - done, owner);
    }
  };
}

function showCurve(status) {
  const named = ["score", "accuracy"].find((name) => status.measures.some((one) => one.name === name));
  const points = status.score?.early ? [] : status.measures.filter(({ name }) => name === named);
  at("accuracy-now").textContent = points.length
    ? `${percent(points.at(-1).value)} after ${count(points.at(-1).answers)} answers, ${named === "score" ? "by a sample of items that it has not learned from" : "as its trainer reports"}`
    : status.score?.early ? "No figure yet: too few of the sampled items are answered." : "No figure yet. It comes with the answers, where a model chooses the lists and is scored (see Settings) and 100 items or more are asked about.";
  at("curve").replaceChildren(...(points.length ? [curve(points.map(({ answers, value }) => [answers, value]))] : []));
}

async function showWork(left, owner) {
  const [{ days, last_hour: answers, over, pace }, todo] = await Promise.all([call("GET", "/review/work"), call("GET", "/review/todo")]);
  const perDay = new Map();
  for (const { day, answers } of days) perDay.set(day, (perDay.get(day) ?? 0) + answers);
  const label = (day) => new Date(day * 86_400_000).toLocaleDateString(document.documentElement.lang, { month: "short", day: "numeric", timeZone: "UTC" });
  at("work").replaceChildren(...(perDay.size ? [bars([...perDay].map(([day, n]) => [label(day), n]))] : []));
  const eta = pace && left > 0 ? `; at this pace done in ${hours(left / pace)}` : "";
  at("work-now").textContent = perDay.size ? `${count(answers)} in the last ${lately(over)}${eta}` : "Nobody has answered yet.";
  const links = perDay.size || !owner ? [] : [element("a", { href: "/admin#people" }, "Invite people"), element("a", { href: "/admin#instructions" }, "Tell them what to do")];
  if (todo.flagged) links.push(element("a", { href: "/admin#items?flagged" }, `${count(todo.flagged)} flagged`));
  if (todo.doubtful) links.push(element("a", { href: "/admin#items?doubtful" }, `${count(todo.doubtful)} suspicious`));
  at("todo").replaceChildren(...(links.length ? links : ["Nothing: no flags are open, and no answer looks wrong."]));
}
