// A line over [x, y] points with y in 0..1, and bars, as SVG made element by element.
import { count } from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
// on a phone as wide as that: letters that shrink with the picture could not be read
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [innerWidth < 640 ? 320 : 600, 240, 48, 28, 12, 12];

function node(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const picture = (label) => node("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "curve", "aria-label": label });

export function curve(points, what = "Accuracy", unit = "answers") {
  const most = Math.max(1, ...points.map(([x]) => x));
  const x = (value) => LEFT + (value / most) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - Math.max(value, 0)) * (HEIGHT - TOP - BOTTOM);
  const [first, last] = [points[0], points.at(-1)];
  const svg = picture(`${what} from ${first[1].toFixed(3)} to ${last[1].toFixed(3)} over ${count(last[0])} ${unit}`);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(node("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share), class: "grid" }));
    svg.append(node("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, what === "Accuracy" ? `${100 * share} %` : share));
  }
  svg.append(node("text", { x: LEFT, y: HEIGHT - 8 }, "0"));
  svg.append(node("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${count(most)} ${unit}`));
  const path = points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
  svg.append(node("polyline", { points: path, class: "line" }));
  svg.append(node("circle", { cx: x(last[0]), cy: y(last[1]), r: 4, class: "dot" }));
  return svg;
}

export function bars(rows) {
  const most = 2 * Math.ceil(Math.max(1, ...rows.map(([, value]) => value)) / 2); // even: its half is a figure, too
  const wide = Math.min((WIDTH - LEFT - RIGHT) / rows.length, 60);
  const svg = picture(`Answers per day: ${rows.map(([name, value]) => `${name} ${count(value)}`).join(", ")}`);
  for (const share of [0, 0.5, 1]) {
    const y = TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
    svg.append(node("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" }));
    svg.append(node("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, count(share * most)));
  }
  rows.forEach(([name, value], place) => {
    const high = (value / most) * (HEIGHT - TOP - BOTTOM);
    svg.append(node("rect", { x: LEFT + place * wide + 2, y: HEIGHT - BOTTOM - high, width: Math.max(wide - 4, 1), height: high, rx: 3, class: "dot" }));
    const every = Math.ceil(48 / wide); // names beside each other
    if (place % every === 0) svg.append(node("text", { x: LEFT + place * wide + wide / 2, y: HEIGHT - 8, "text-anchor": "middle" }, name));
  });
  return svg;
}
