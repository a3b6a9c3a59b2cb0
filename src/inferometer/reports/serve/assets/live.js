// A recording that goes on: steps, step times and counters, once a second.

import * as api from "./api.js";
import { bytes, duration, el, svg } from "./dom.js";
import { problem } from "./jobs.js";

const KEPT = 600; // points of a line
const EVERY_MS = 1000;

export function showLive(place, state, id) {
  const run = state.runs.find((each) => each.id === id);
  const facts = el("dl", { class: "big" });
  const steps = el("div", { class: "steps" });
  const search = el("input", { type: "search", placeholder: "Search counters", "aria-label": "Search counters", oninput: () => draw() });
  const charts = el("div", { class: "charts" });
  const trouble = el("div");
  place.replaceChildren(
    el("div", { class: "title" }, el("h1", {}, run?.name ?? "Recording"), el("span", { class: "mark live" }, "recording"),
      el("a", { href: `#/run/${id}` }, "Report as it is now")),
    trouble, facts, steps, el("div", { class: "tools" }, search), charts);
  const lines = new Map();
  let since = -1;
  let timer = null;

  async function look() {
    try {
      const found = await api.live(id, since);
      if (!place.contains(charts)) return;
      trouble.replaceChildren();
      take(found);
      if (found.is_finished) return finished();
    } catch (error) {
      if (!place.contains(charts)) return;
      trouble.replaceChildren(problem(error));
    }
    timer = setTimeout(look, EVERY_MS);
  }

  function take(found) {
    since = found.now;
    add("step", "Step time", null, "ns", found.new_steps.map(([at, ns]) => [at, ns]));
    for (const each of found.metrics) add(`${each.metric} ${each.device} ${each.unit}`, each.metric, each.device, each.unit, each.points);
    const numbers = [["Recorded", duration(found.seconds * 1e9)], ["Steps", found.steps.toLocaleString("en")], ["Step, median of the last", duration(found.step_ns)],
      ["Model", found.model], ["Devices", found.devices.join(", ")], ["Processes", String(found.processes)]];
    facts.replaceChildren(...numbers.filter(([, text]) => text).map(([label, text]) => el("div", {}, el("dt", {}, label), el("dd", {}, text))));
    draw();
  }

  function add(key, title, device, unit, points) {
    const line = lines.get(key) ?? { title, device, unit, points: [] };
    line.points = [...line.points, ...points].slice(-KEPT);
    lines.set(key, line);
  }

  function draw() {
    const step = lines.get("step");
    steps.replaceChildren(step?.points.length ? chart(step, 110) : el("p", { class: "words note" }, "No step has ended yet."));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = [...lines].filter(([key, line]) => key !== "step" && line.points.length && words.every((word) => key.toLowerCase().includes(word)));
    charts.replaceChildren(...shown.map(([, line]) => chart(line, 56)));
  }

  function finished() {
    place.querySelector(".mark.live").textContent = "finished";
    place.querySelector(".title a").textContent = "Report";
  }

  look();
  return { close() { clearTimeout(timer); } };
}

function chart(line, height) {
  const width = 400;
  const times = line.points.map(([at]) => at);
  const values = line.points.map(([, value]) => value);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1e-9);
  const x = (at) => (to > from ? ((at - from) / (to - from)) * width : width);
  const y = (value) => height - 2 - ((value - low) / (high - low)) * (height - 4);
  const path = line.points.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const last = text(values.at(-1), line.unit);
  const name = line.device ? `${line.title}, ${line.device}` : line.title;
  return el("figure", { class: "live-chart" },
    el("figcaption", {}, el("span", { title: name }, line.title, line.device && el("small", {}, ` ${line.device}`)), el("b", {}, last)),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${name}: now ${last}, from ${text(Math.min(...values), line.unit)} to ${text(Math.max(...values), line.unit)}` },
      svg("path", { d: path })));
}

function text(value, unit) {
  if (unit === "ns") return duration(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "B/s") return `${bytes(value)}/s`;
  const number = Math.abs(value) >= 1e6 ? value.toExponential(3) : value.toLocaleString("en", { maximumFractionDigits: 2 });
  return unit ? `${number} ${unit}` : number;
}
