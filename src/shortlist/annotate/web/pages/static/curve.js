// A line over [x, y] points with y in 0..1, as SVG made element by element.
import { count } from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [600, 240, 48, 28, 12, 12];

function node(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function curve(points) {
  const most = Math.max(1, ...points.map(([x]) => x));
  const x = (value) => LEFT + (value / most) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM);
  const [first, last] = [points[0], points.at(-1)];
  const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "curve" });
  svg.setAttribute("aria-label", `Accuracy from ${first[1].toFixed(3)} to ${last[1].toFixed(3)} over ${count(last[0])} answers`);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(node("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share), class: "grid" }));
    svg.append(node("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  svg.append(node("text", { x: LEFT, y: HEIGHT - 8 }, "0"));
  svg.append(node("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${count(most)} answers`));
  const path = points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
  svg.append(node("polyline", { points: path, class: "line" }));
  svg.append(node("circle", { cx: x(last[0]), cy: y(last[1]), r: 4, class: "dot" }));
  return svg;
}
