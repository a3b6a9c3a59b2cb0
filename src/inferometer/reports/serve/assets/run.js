// One run, or two that are compared: the report in a frame, and what only a server can show.

import * as jobs from "./jobs.js";
import { bytes, date, duration, el, share } from "./dom.js";
import { showLine } from "./line.js";
import { showSql } from "./sql.js";

const VIEWS = { report: "Report", line: "Time line", sql: "SQL", about: "About" };

export function showRun(place, state, id, view) {
  const run = state.runs.find((each) => each.id === id);
  if (!run) return missing(place);
  const body = el("div", { class: "body" });
  const tabs = Object.entries(VIEWS).filter(([name]) => run.kind !== "fleet" || name !== "line").map(([name, title]) =>
    el("a", { href: `#/run/${id}/${name}`, "aria-current": name === view ? "page" : null }, title));
  place.replaceChildren(
    el("div", { class: "title" }, el("h1", {}, run.name), run.place && el("small", {}, run.place), el("nav", { class: "views", "aria-label": "Views" }, tabs)),
    body);
  if (view === "line" && run.kind !== "fleet") return showLine(body, run);
  if (view === "sql") return showSql(body, run);
  if (view === "about") return showAbout(body, run);
  return jobs.follow(body, "page", { run: id }, (job) => frame(body, state, job, run.name));
}

export function showPair(place, state, base, candidate) {
  const [one, other] = [base, candidate].map((id) => state.runs.find((run) => run.id === id));
  if (!one || !other) return missing(place);
  const body = el("div", { class: "body" });
  place.replaceChildren(
    el("div", { class: "title" }, el("h1", {}, other.name, el("small", {}, " compared with "), one.name),
      el("a", { href: `#/compare/${candidate}/${base}` }, "Swap")),
    body);
  return jobs.follow(body, "pair_page", { base, candidate }, (job) => frame(body, state, job, `${other.name} compared with ${one.name}`));
}

function frame(body, state, job, title) {
  const address = `${state.pages}${job.page}`;
  const left = job.result.left_out ?? [];
  body.replaceChildren(
    ...left.map((chart) => el("p", { class: "words note" }, `Left out, since the page would be too large: ${chart}`)),
    el("iframe", { src: address, title: `Report: ${title}`, sandbox: "allow-scripts allow-downloads" }));
}

function showAbout(body, run) {
  const show = (about) => body.replaceChildren(el("dl", { class: "facts" }, lines(run, about).map(([label, text]) => el("div", {}, el("dt", {}, label), el("dd", {}, text)))));
  if (run.about) show(run.about);
  else jobs.follow(body, "about", { run: run.id }, (job) => show(job.result));
}

function lines(run, about) {
  const rows = Object.entries(about.rows).map(([table, count]) => `${count.toLocaleString("en")} ${table}`);
  return [
    ["Format", about.format], ["Written by", about.tool], ["Framework", about.framework], ["Model", about.model],
    ["Devices", about.devices.join(", ")], ["Machines", about.hosts.join(", ")], ["Traces", about.traces?.toLocaleString("en")], ["Ranks", about.ranks > 1 ? String(about.ranks) : ""],
    ["Recorded", about.date ? `${date(about.date)} UTC` : ""], ["Written", `${date(run.changed)} UTC`], ["Size", bytes(run.bytes)],
    ["Length", duration(about.wall_ns)], ["Devices busy", share(about.busy_share)],
    ["Steps", about.steps ? `${about.steps.toLocaleString("en")}, median ${duration(about.step_ns)}` : ""],
    ["Tables", rows.join(", ")], ["Warnings", about.warnings ? about.warnings.toLocaleString("en") : ""],
  ].filter(([, text]) => text);
}

function missing(place) {
  place.replaceChildren(el("h1", {}, "There is no such run"), el("p", { class: "words" }, "It was moved or removed. ", el("a", { href: "#/" }, "All runs")));
}
