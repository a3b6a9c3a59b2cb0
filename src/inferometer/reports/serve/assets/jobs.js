// Work in progress: a line for each job with what it is at, how far, and a button that ends it.

import * as api from "./api.js";
import { el, say } from "./dom.js";

const WORDS = { about: "Reading", page: "Report of", pair_page: "Comparison of", verdict: "Verdict on", line: "Time line of", query: "Question to" };
const waiting = new Map(); // by id: who waits for the end of a job
const watched = new Map(); // by id: the line
const ended = new Set(); // an answer that was on its way may come behind the event of the end

export function words(job) {
  return job.state === "queued" ? "waits its turn" : job.doing || "starts";
}

/** Begin a job; `onChange` sees it as it goes. The promise has it when it is done. */
export async function run(kind, given, onChange = () => {}) {
  let job = await api.begin(kind, given);
  const page = job.page;
  onChange(job);
  if (!over(job)) {
    job = await new Promise((resolve) => {
      waiting.set(job.id, [...(waiting.get(job.id) ?? []), { resolve, onChange }]);
      api.job(job.id).then(heard, () => {}); // what it did before we listened
    });
  }
  if (job.state === "failed") throw new Error(job.error);
  if (job.state === "cancelled") throw new Error("It was cancelled.");
  if (kind === "query" && job.result === null) job = await api.job(job.id);
  return { ...job, page };
}

const over = (job) => ["done", "failed", "cancelled"].includes(job.state);

export function heard(job) {
  if (ended.has(job.id) && !over(job)) return;
  if (over(job)) ended.add(job.id);
  for (const one of waiting.get(job.id) ?? []) {
    one.onChange(job);
    if (over(job)) one.resolve(job);
  }
  if (over(job)) waiting.delete(job.id);
  show(job);
}

function show(job) {
  const place = document.getElementById("jobs");
  if (over(job)) {
    watched.get(job.id)?.remove();
    watched.delete(job.id);
    if (job.state === "failed" && job.kind !== "about") say(`Failed: ${job.title}`);
    return;
  }
  let line = watched.get(job.id);
  if (!line) {
    const stop = el("button", { type: "button", onclick: () => api.cancel(job.id).catch(() => {}), "aria-label": `Cancel: ${job.title}` }, "Cancel");
    line = el("div", { class: "job", "data-job": job.id }, el("span", { class: "what" }), el("progress", { max: 1, "aria-label": job.title }), stop);
    place.append(line);
    watched.set(job.id, line);
  }
  line.firstChild.replaceChildren(`${WORDS[job.kind] ?? job.kind} ${job.title} `, el("small", {}, words(job)));
  const bar = line.querySelector("progress");
  if (job.share === null) bar.removeAttribute("value");
  else bar.value = job.share;
}

/** A place that shows how a job goes, with cancel, then what `shown` makes of it. */
export function follow(place, kind, given, shown) {
  const text = el("p", { class: "words" }, "It begins.");
  const bar = el("progress", { max: 1, "aria-label": "Progress" });
  const stop = el("button", { type: "button" }, "Cancel");
  place.replaceChildren(el("div", { class: "waiting" }, text, bar, stop));
  return run(kind, given, (job) => {
    stop.onclick = () => api.cancel(job.id).catch(() => {});
    text.textContent = `${words(job)[0].toUpperCase()}${words(job).slice(1)} …`;
    if (job.share === null) bar.removeAttribute("value");
    else bar.value = job.share;
  }).then(
    (job) => place.isConnected && shown(job),
    (error) => {
      if (!place.isConnected) return;
      const again = el("button", { type: "button", onclick: () => follow(place, kind, given, shown) }, "Try again");
      place.replaceChildren(problem(error), again);
    },
  );
}

export function problem(error) {
  const [first, ...rest] = String(error.message).split("\n");
  return el("div", { class: "warning words", role: "alert" }, el("p", {}, first), ...rest.map((line) => el("p", {}, line.trim())));
}
