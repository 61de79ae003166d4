"use strict";

/* Verdicts by status. */
for (const group of document.querySelectorAll(".filter")) {
  const table = group.nextElementSibling;
  group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of group.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
    const status = button.dataset.status;
    for (const row of table.querySelectorAll("tr[data-status]"))
      row.hidden = status !== "" && row.dataset.status !== status;
    for (const body of table.tBodies)
      body.hidden = !body.querySelector("tr[data-status]:not([hidden])");
  });
}

/* A link to a row that a filter hides shows all rows again; a print holds what is folded. */
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.hidden) target.closest("table").previousElementSibling.querySelector("button").click();
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

/* Numbers under the pointer. */
const numbers = { figures: {}, explorers: {} };
for (const script of document.querySelectorAll("script.numbers")) {
  const held = JSON.parse(script.textContent);
  Object.assign(numbers.figures, held.figures);
  if (held.explorer) numbers.explorers[script.dataset.paper] = held.explorer;
}
const SVG = "http://www.w3.org/2000/svg";
const tip = document.getElementById("tip");
const shown = (value) => (value === null ? "none" : String(value).replace("-", "\u2212"));

function element(name, attributes = {}, parent = null, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

/* Every point and every tile of a figure as {across, down, text}. */
function places(marks) {
  const found = [];
  for (const mark of marks) {
    if (mark.points)
      for (const [across, down, x, y] of mark.points)
        found.push({ across, down, text: `${mark.label}: ${shown(y)} at ${mark.x || "x"} ${shown(x)}` });
    else {
      const [left, top, right, bottom] = mark.box;
      mark.cells.forEach((row, i) => row.forEach((value, j) => found.push({
        across: left + ((right - left) * (j + 0.5)) / row.length,
        down: top + ((bottom - top) * (i + 0.5)) / mark.cells.length,
        text: `row ${i + 1}, column ${j + 1}: ${shown(value)}`,
      })));
    }
  }
  return found;
}

function tell(svg, dot, place) {
  dot.setAttribute("cx", place.across);
  dot.setAttribute("cy", place.down);
  dot.removeAttribute("visibility");
  tip.textContent = place.text;
  tip.hidden = false;
  const at = new DOMPoint(place.across, place.down).matrixTransform(svg.getScreenCTM());
  const wide = document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, Math.min(at.x + 10, wide - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(4, at.y - tip.offsetHeight - 10)}px`;
}

for (const plot of document.querySelectorAll(".plot[data-marks]")) {
  const marks = numbers.figures[plot.dataset.marks];
  const svg = plot.querySelector("svg");
  if (!marks || !svg) continue;
  const all = places(marks);
  const dot = element("circle", { r: 4, class: "dot", visibility: "hidden" }, svg);
  let current = -1;
  const hide = () => { dot.setAttribute("visibility", "hidden"); tip.hidden = true; };
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", "Figure; the arrow keys read its numbers");
  plot.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = 22 * 22;
    let near = -1;
    all.forEach((place, index) => {
      const far = (place.across - at.x) ** 2 + (place.down - at.y) ** 2;
      if (far < best) { best = far; near = index; }
    });
    if (near < 0) { hide(); return; }
    current = near;
    tell(svg, dot, all[near]);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    current = (current + step + all.length) % all.length;
    tell(svg, dot, all[current]);
  });
}
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

/* A picture and a curve that the radius moves together, for each net and seed. */
function choices(box, legend, values, chosen, choose) {
  const set = document.createElement("fieldset");
  set.append(Object.assign(document.createElement("legend"), { textContent: legend }));
  for (const value of values) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), {
      type: "radio", name: `${box.dataset.explorer}-${legend}`, value, checked: value === chosen,
    });
    input.addEventListener("change", () => choose(value));
    label.append(input, ` ${value}`);
    set.append(label);
  }
  return set;
}

function wrong(cells, size) {
  const side = size / cells.length;
  let path = "";
  cells.forEach((row, i) => {
    for (const run of row.matchAll(/0+/g))
      path += `M${(run.index * side).toFixed(2)} ${(i * side).toFixed(2)}h${(run[0].length * side).toFixed(2)}v${(side + 0.05).toFixed(2)}h-${(run[0].length * side).toFixed(2)}z`;
  });
  return path;
}

function explore(box, held) {
  const nets = [...new Set(held.planes.map((plane) => plane.net))];
  const seeds = [...new Set(held.planes.map((plane) => String(plane.seed)))];
  const state = { net: nets[0], seed: seeds[0], step: Math.round(held.radii.length * 0.4) };
  const form = document.createElement("form");
  const slider = Object.assign(document.createElement("input"), {
    type: "range", min: 0, max: held.radii.length - 1, step: 1, value: state.step,
  });
  const label = document.createElement("label");
  const said = document.createElement("output");
  label.className = "radius";
  label.append("radius ", slider, said);
  form.append(
    choices(box, "taught", nets, state.net, (value) => { state.net = value; draw(); }),
    choices(box, "seed", seeds, state.seed, (value) => { state.seed = value; draw(); }),
    label,
  );
  const size = 300;
  const frame = document.createElement("div");
  frame.className = "pair";
  const plane = element("svg", { viewBox: `0 0 ${size} ${size}`, role: "img" });
  const curve = element("svg", { viewBox: `0 0 420 ${size}`, role: "img" });
  frame.append(plane, curve);
  box.append(form, frame);
  slider.addEventListener("input", () => { state.step = Number(slider.value); draw(); });
  form.addEventListener("submit", (event) => event.preventDefault());

  function draw() {
    const now = held.planes.find((p) => p.net === state.net && String(p.seed) === state.seed);
    const radius = held.radii[state.step];
    const accuracy = now.accuracy[state.step];
    const words = `${shown(radius)} ${held.unit}: ${Math.round(100 * accuracy)} % of the points hold`;
    said.textContent = ` ${words}`;
    slider.setAttribute("aria-valuetext", words);
    plane.replaceChildren();
    plane.setAttribute("aria-label", `Decision of the net taught ${now.net} around a centre, with a ball of radius ${radius}`);
    element("rect", { width: size, height: size, class: "right" }, plane);
    element("path", { d: wrong(now.cells, size), class: "wrong" }, plane);
    element("circle", { cx: size / 2, cy: size / 2, r: (radius / now.extent) * (size / 2), class: "ball" }, plane);
    element("circle", { cx: size / 2, cy: size / 2, r: 3, class: "centre" }, plane);
    element("text", { x: 8, y: size - 8 }, plane, "right");
    element("text", { x: size - 8, y: size - 8, "text-anchor": "end" }, plane, "average direction \u2192");
    drawCurve(now, radius, accuracy);
  }

  function drawCurve(now, radius, accuracy) {
    const [left, right, top, bottom] = [44, 404, 16, size - 40];
    const last = held.radii[held.radii.length - 1];
    const x = (r) => left + ((right - left) * r) / last;
    const y = (a) => bottom - (bottom - top) * a;
    curve.replaceChildren();
    curve.setAttribute("aria-label", `Robust accuracy against radius, ${now.net}, seed ${now.seed}`);
    for (const a of [0, 0.5, 1]) {
      element("line", { x1: left, x2: right, y1: y(a), y2: y(a), class: "grid" }, curve);
      element("text", { x: left - 8, y: y(a) + 4, "text-anchor": "end" }, curve, String(a));
    }
    for (let r = 0; r <= last + 1e-9; r += 0.2)
      element("text", { x: x(r), y: bottom + 18, "text-anchor": "middle" }, curve, r.toFixed(1));
    element("text", { x: right, y: bottom + 34, "text-anchor": "end" }, curve, `radius / ${held.unit}`);
    for (const other of held.planes) {
      const mine = other === now;
      const points = held.radii.map((r, i) => `${x(r).toFixed(1)},${y(other.accuracy[i]).toFixed(1)}`);
      if (mine || other.net === now.net)
        element("polyline", { points: points.join(" "), class: mine ? "mine" : "other" }, curve);
    }
    element("line", { x1: x(radius), x2: x(radius), y1: top, y2: bottom, class: "at" }, curve);
    element("circle", { cx: x(radius), cy: y(accuracy), r: 4.5, class: "centre" }, curve);
  }
  draw();
}
for (const box of document.querySelectorAll("[data-explorer]"))
  explore(box, numbers.explorers[box.dataset.explorer]);
if (location.hash) reveal();
