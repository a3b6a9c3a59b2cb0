// The page's side of the talk with Python: says what the browser offers, then does what it is asked, until it is over.

import { openDevice, Engine } from "./engine.js";
import { Weights } from "./weights.js";
import { View } from "./view.js";

const PINGS = 12;
const OURS = location.hash === "#ours"; // a browser that was started for this page, and ends with its last window
const view = new View(document);
let over = false;
let stopped = false;
let outbox = Promise.resolve(); // posts leave in order, and nothing waits for them

async function send(kind, body) {
  const response = await fetch(kind, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${kind}: status ${response.status}`);
  stopped = (await response.json()).stop === true;
}

function post(kind, body) {
  outbox = outbox.then(() => send(kind, body)).catch((error) => !over && view.state(`Python is gone: ${error.message}`));
  return outbox;
}

function log(level, module, text) {
  const time = performance.now();
  view.line(level, time, module, text);
  post("log", { level, time, module, text });
}

addEventListener("error", (event) => log("error", "Page", event.message));
addEventListener("unhandledrejection", (event) => log("error", "Page", String(event.reason)));

// The smallest step that the clock makes.
function findResolution() {
  let step = Infinity;
  for (let round = 0; round < 20; round += 1) {
    const first = performance.now();
    let then = first;
    while (then === first) then = performance.now();
    step = Math.min(step, then - first);
  }
  return step;
}

async function ping() {
  const asked = performance.now();
  const serverTime = await (await fetch("clock")).text();
  return [asked, serverTime, performance.now()];
}

// Text that Python sends for the reader. Python sees by its end that the page is gone.
function listen() {
  const events = new EventSource("events");
  events.onmessage = ({ data }) => view.event(JSON.parse(data));
  events.onerror = () => {
    if (over) return;
    over = true;
    events.close();
    view.state("Python is gone");
    if (OURS) close(); // it was killed, or it would have ended the browser itself
  };
  return new Promise((opened) => (events.onopen = opened));
}

async function load(engine, { id }) {
  const phases = [];
  let weights = null;
  const mark = async (name, work, bytes = 0) => {
    view.state(`Loading: ${name}`);
    const start = performance.now();
    await work();
    phases.push({ name, start, duration: performance.now() - start, bytes });
  };
  try {
    const response = await fetch("program.json");
    const program = await response.json();
    view.program(program);
    weights = new Weights(program, log, (done, total) => view.progress(done, total));
    await engine.load(program, weights, mark);
    view.state("Ready");
    await post("load", { id, phases, fetched: weights.fetched, cached: weights.cached });
  } catch (error) {
    view.state(`Failed: ${error.message}`);
    await post("load", { id, phases, error: error.message });
  }
}

async function run(engine, { id, request }) {
  view.begin(request, engine.phases);
  stopped = false;
  const tell = (submission) => {
    post("submission", { id, ...submission });
    view.submission(submission);
  };
  try {
    await engine.run(request, tell, () => stopped);
    view.end(stopped ? "Stopped" : "Ready");
    await post("result", { id, stopped });
  } catch (error) {
    view.end(`Failed: ${error.message}`);
    await post("result", { id, error: error.message, lost: engine.gone !== null });
  }
}

async function obey(engine) {
  while (!over) {
    const response = await fetch("command");
    if (response.status === 204) continue;
    if (!response.ok) throw new Error(`command: status ${response.status}`);
    const command = await response.json();
    if (command.kind === "load") await load(engine, command);
    else if (command.kind === "run") await run(engine, command);
    else if (command.kind === "close") {
      over = true;
      view.state("Over: this page may be closed");
    }
  }
}

async function main() {
  if (document.prerendering) await new Promise((shown) => addEventListener("prerenderingchange", shown, { once: true }));
  await listen();
  try {
    const { device, facts } = await openDevice();
    const pings = [];
    for (let round = 0; round < PINGS; round += 1) pings.push(await ping());
    view.adapter(facts);
    const engine = new Engine(device, log);
    await post("adapter", { ...facts, pings, resolution: findResolution() });
    await obey(engine);
  } catch (error) {
    if (over) return;
    view.state(`Failed: ${error.message}`);
    await post("adapter", { error: error.message });
  }
}

main();
