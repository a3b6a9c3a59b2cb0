// The way in: what the address says is shown, and what the server tells is handed on.

import * as api from "./api.js";
import * as jobs from "./jobs.js";
import * as list from "./list.js";
import { el } from "./dom.js";
import { showLive } from "./live.js";
import { showPair, showRun } from "./run.js";
import { listenForDrops } from "./uploads.js";

const view = document.getElementById("view");
let state = null;
let shown = {}; // what is seen now: `update` takes a new state, `close` ends it

async function route() {
  shown.close?.();
  shown = {};
  const address = location.hash;
  const [, where, ...rest] = address.split("/");
  const ids = where === "compare" ? rest : rest.slice(0, 1);
  if (ids.some((id) => !state.runs.some((run) => run.id === id))) await refresh(); // one that has just come
  if (location.hash !== address) return;
  document.body.classList.toggle("whole", Boolean(where));
  const crumbs = document.getElementById("crumbs");
  crumbs.replaceChildren(...(where ? [el("a", { href: "#/" }, "All runs")] : []));
  if (where === "run") showRun(view, state, rest[0], rest[1] ?? "report");
  else if (where === "compare") showPair(view, state, rest[0], rest[1]);
  else if (where === "live") shown = showLive(view, state, rest[0]);
  else shown = list.show(view, state);
  document.title = `${view.querySelector("h1")?.textContent ?? "Runs"} - Inferometer`;
  if (where) view.focus({ preventScroll: true });
}

async function refresh() {
  state = await api.state();
  state.jobs.forEach(jobs.heard);
  shown.update?.(state);
}

let pending = null;
function refreshSoon() {
  pending ??= setTimeout(() => { pending = null; refresh().catch(() => {}); }, 200);
}

function theme() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; name(); };
  dark.onchange = name;
  name();
}

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key === "/" && !isTyping) { event.preventDefault(); document.querySelector("input[type=search]")?.focus(); }
});

theme();
try {
  await refresh();
  listenForDrops(() => state.may_write);
  addEventListener("hashchange", route);
  route();
  api.listen((event) => (event.job ? jobs.heard(event.job) : refreshSoon()), refreshSoon);
} catch (error) {
  view.replaceChildren(jobs.problem(error));
}
