// Overview: how much is done, how good it is, what it cost, how long to go.
import { call } from "./api.js";
import { bars, curve } from "./curve.js";
import { at, element } from "./dom.js";
import { count, hours, percent, seconds } from "./figures.js";
import { bar } from "./parts.js";

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
    at("to-go").textContent = toGo(status);
    at("figures").replaceChildren(...figures(status));
    showCurve(status);
    showSizes(status.seconds_by_size);
    if (entered || Date.now() - looked > SLOW_MS || (status.answers < MANY && status.answers !== counted)) {
      [looked, counted] = [Date.now(), status.answers];
      await showWork(total - done, owner);
    }
  };
}

function toGo({ progress: { done, total }, items, items_done, hours: spent }) {
  if (total <= done) return total ? "All answers are in." : "";
  // by what is done, not by answers: None that is asked again and gold items take time, too, and bring the end no nearer
  const left = done && spent !== null ? `, about ${hours(((total - done) * spent) / done)} of work` : "";
  return `${count(items - items_done)} items to go${left}`;
}

function figures(status) {
  const { score, agreement, progress: { done, total } } = status;
  const known = status.known ? `, ${count(status.known)} known or corrected` : "";
  const asked = total > status.items ? `, ${count(done)} of ${count(total)} questions settled` : ""; // of several people each
  const pace = status.answers && status.hours !== null ? `${((3600 * status.hours) / status.answers).toFixed(1)} s an answer` : "";
  return [
    figure("Items done", count(status.items_done), `of ${count(status.items)}${known}${asked}`),
    ...(score ? scored(score) : []),
    figure("Answers in all", count(status.answers), `${count(status.skips)} skipped`),
    figure("Time spent", hours(status.hours), pace),
    figure("None share", percent(status.none_share)),
    figure("Agreement", percent(agreement.share), agreement.pairs ? `${count(agreement.pairs)} pairs` : "nobody answered the same items"),
    figure("Classes", count(status.classes)),
  ];
}

function scored({ early, items, asked, size, accuracy, low, high, questions_for_a_point: questions }) {
  if (early) {
    const answered = `${count(items)} sampled ${items === 1 ? "item is" : "items are"} answered`;
    const behind = `${count(items)} of ${count(size)} sampled items count so far: ${count(asked)} are answered, some after new or skipped ones, which are asked about next`;
    return [figure("Model right", "–", `too early: ${asked > items ? behind : answered}`)];
  }
  const right = figure("Model right", percent(accuracy), `${percent(low)} to ${percent(high)}, ${count(items)} sampled items`);
  return questions === null ? [right] : [right, figure("One point more", `≈ ${count(Number(questions.toPrecision(1)))}`, "questions")];
}

function showSizes(sizes) {
  at("sizes").hidden = !sizes.length;
  const most = Math.max(...sizes.map((one) => one.median_seconds));
  at("seconds").replaceChildren(...sizes.map(({ size, median_seconds: median }) => bar(classes(size), median, most, `${seconds(median)} s`)));
}

const NO_SCORE = "No figure yet. It takes answers, a model that chooses the lists and is scored (Settings), and at least 100 items to ask about.";
const EARLY = "No figure yet: too few of the sampled items are answered.";
const BETWEEN = "No figure yet: sampled items that are new or were skipped are asked about first.";

function showCurve({ measures, score }) {
  const named = ["score", "accuracy"].find((name) => measures.some((one) => one.name === name));
  const points = score?.early ? [] : measures.filter(({ name }) => name === named);
  const by = named === "score" ? "by a sample of items that it has not learned from" : "as its trainer reports";
  const now = points.length ? `${percent(points.at(-1).value)} after ${count(points.at(-1).answers)} answers, ${by}` : null;
  at("accuracy-now").textContent = now ?? (!score?.early ? NO_SCORE : score.asked > score.items ? BETWEEN : EARLY);
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
  const link = (place, words, kind = "") => element("a", { href: `/admin#${place}`, class: kind }, words);
  const links = perDay.size || !owner ? [] : [link("people", "Invite people", "primary"), link("instructions", "Tell them what to do")];
  if (todo.flagged) links.push(link("items?flagged", `${count(todo.flagged)} flagged`));
  if (todo.doubtful) links.push(link("items?doubtful", `${count(todo.doubtful)} suspicious`));
  at("todo").replaceChildren(...(links.length ? links : ["Nothing: no flags are open, and no answer looks wrong."]));
}
