// A line over [x, y] points with y in 0..1, as SVG made element by element.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 200;

function node(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function curve(points) {
  const most = Math.max(1, ...points.map(([x]) => x));
  const path = points.map(([x, y]) => `${(x / most) * WIDTH},${(1 - y) * HEIGHT}`).join(" ");
  const last = points.at(-1);
  const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "curve" });
  svg.setAttribute("aria-label", `from ${points[0][1].toFixed(3)} to ${last[1].toFixed(3)} over ${last[0]} answers`);
  for (const y of [0, 0.5, 1]) {
    svg.append(node("line", { x1: 0, x2: WIDTH, y1: (1 - y) * HEIGHT, y2: (1 - y) * HEIGHT, class: "grid" }));
  }
  svg.append(node("polyline", { points: path, class: "line" }));
  return svg;
}
