// The list of runs: search, tags, sort, two ticks to compare, a base that the others are judged against.

import * as jobs from "./jobs.js";
import { bytes, date, duration, el, say, share } from "./dom.js";
import { tagEditor } from "./tags.js";
import { addButton } from "./uploads.js";

const kept = { all: false, search: "", sort: "changed", down: true, base: null, ticked: [] };
const verdicts = new Map(); // by keys of base and run: a result, or an error
const asked = new Set();
const MOST_ROWS = 500;
const MOST_VERDICTS = 50; // at once: each is a comparison of two runs

const COLUMNS = [
  ["name", "Run", (run) => run.name.toLowerCase()],
  ["changed", "Date", (run) => run.about?.date ?? run.changed],
  ["device", "Device", (run) => devices(run).toLowerCase()],
  ["model", "Model", (run) => (run.about?.model ?? "").toLowerCase()],
  ["length", "Length", (run) => run.about?.wall_ns ?? -1],
  ["step", "Step", (run) => run.about?.step_ns ?? -1],
  ["busy", "Busy", (run) => run.about?.busy_share ?? -1],
];
const NUMBERS = new Set(["length", "step", "busy"]);

const devices = (run) => (run.about?.devices ?? []).join(", ");
const isFleet = (run) => run.kind === "fleet";
const tagsOf = (run) => [...run.tags, ...(run.about?.tags ?? [])];

function matches(run, search) {
  const text = [run.name, run.place, devices(run), run.about?.model, run.about?.framework, run.about?.tool, ...tagsOf(run)].join(" ").toLowerCase();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => (word.startsWith("tag:") ? tagsOf(run).some((tag) => tag.toLowerCase() === word.slice(4)) : text.includes(word)));
}

export function show(place, state) {
  const search = el("input", {
    type: "search", id: "search", value: kept.search, placeholder: "Search: name, device, model, tag:kineto", "aria-label": "Search runs",
    oninput: () => { kept.search = search.value; rows(); },
  });
  const compare = el("button", { type: "button", id: "compare", onclick: () => go() }, "Compare");
  const count = el("output", { for: "search" });
  const table = el("div", { class: "scroll runs", tabindex: "0", role: "region", "aria-label": "Runs" });
  const note = el("p", { class: "words note" });

  function go() {
    const [one, other] = ordered();
    location.hash = `#/compare/${one}/${other}`;
  }

  /** The base first, where one of the two is it; else the older one. */
  function ordered() {
    const [a, b] = kept.ticked;
    if (kept.base === b) return [b, a];
    const of = (id) => state.runs.find((run) => run.id === id);
    return kept.base === a || COLUMNS[1][2](of(a)) <= COLUMNS[1][2](of(b)) ? [a, b] : [b, a];
  }

  function tick(id, isTicked) {
    kept.ticked = isTicked ? [...kept.ticked.filter((each) => each !== id), id].slice(-2) : kept.ticked.filter((each) => each !== id);
    for (const box of table.querySelectorAll("input[type=checkbox]")) box.checked = kept.ticked.includes(box.value);
    ready();
  }

  function ready() {
    compare.disabled = kept.ticked.length !== 2;
    compare.textContent = kept.ticked.length === 1 ? "Tick another one to compare" : "Compare the two ticked";
  }

  function head([name, title]) {
    const sorted = kept.sort === name ? (kept.down ? "descending" : "ascending") : null;
    const turn = () => {
      kept.down = kept.sort === name ? !kept.down : NUMBERS.has(name) || name === "changed";
      kept.sort = name;
      rows();
      table.querySelector(`[data-sort=${name}] button`)?.focus();
    };
    return el("th", { scope: "col", "aria-sort": sorted, "data-sort": name, class: NUMBERS.has(name) ? "n" : null }, el("button", { type: "button", onclick: turn }, title));
  }

  function rows() {
    const key = COLUMNS.find(([name]) => name === kept.sort)[2];
    const [others, runs] = [state.runs.filter((run) => run.about?.is_profile === false), state.runs.filter((run) => kept.all || run.about?.is_profile !== false)];
    const found = runs.filter((run) => matches(run, kept.search)).map((run) => [key(run), run]);
    found.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x.name < y.name ? -1 : 1));
    if (kept.down) found.reverse();
    const shown = found.slice(0, MOST_ROWS).map(([, run]) => run);
    count.textContent = `${found.length.toLocaleString("en")} of ${runs.length.toLocaleString("en")} runs`;
    const focused = document.activeElement?.closest?.("[data-id]");
    const focus = focused && [focused.dataset.id, [...focused.querySelectorAll("a, input, button")].indexOf(document.activeElement)];
    table.replaceChildren(
      el("table", {},
        el("caption", { class: "unseen" }, "Runs"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, "Tick to compare")), ...COLUMNS.map(head),
          el("th", { scope: "col" }, "Tags"), el("th", { scope: "col" }, "Against the base"))),
        el("tbody", {}, shown.map(row))),
    );
    if (focus) table.querySelector(`[data-id="${focus[0]}"]`)?.querySelectorAll("a, input, button")[focus[1]]?.focus();
    const turn = el("button", { type: "button", class: "quiet shown", onclick: () => { kept.all = !kept.all; rows(); } }, kept.all ? "hide" : "show");
    note.replaceChildren(notes(found.length, shown.length), ...(others.length ? [` ${others.length.toLocaleString("en")} other ${others.length === 1 ? "file is no profile" : "files are no profiles"}: `, turn] : []));
    ready();
    judge(shown);
  }

  function notes(all, shown) {
    if (!state.runs.length) return `No runs here yet: files, stores and recordings appear as they come. ${links()}`;
    if (!all) return "No run has all these words.";
    const rest = all > shown ? `The first ${shown} are shown: search for others. ` : "";
    return rest + (state.is_whole ? "" : "The folders hold more entries than are looked through: name a smaller one. ") + links();
  }

  function links() {
    const n = state.unfollowed;
    if (!n) return "";
    return n === 1 ? "A link to a folder, or out of the folders, isn't followed: name what it leads to." : `${n.toLocaleString("en")} links to folders, or out of the folders, aren't followed: name what they lead to.`;
  }

  function row(run) {
    const box = !isFleet(run) && el("input", { type: "checkbox", value: run.id, checked: kept.ticked.includes(run.id), "aria-label": `Tick ${run.name}`, onchange: () => tick(run.id, box.checked) });
    const link = el("a", { href: run.is_recording ? `#/live/${run.id}` : `#/run/${run.id}` }, run.name);
    const state_ = run.is_recording ? el("span", { class: "mark live" }, "recording") : run.error ? el("span", { class: "mark bad", title: run.error }, "can't be read") : isFleet(run) ? el("span", { class: "mark plain" }, run.about?.traces ? `fleet of ${run.about.traces.toLocaleString("en")}` : "fleet") : null;
    const about = run.about ?? {};
    return el("tr", { class: "row", "data-id": run.id },
      el("td", { class: "tick" }, box),
      el("th", { scope: "row" }, link, state_ && " ", state_, run.place && el("small", { class: "place" }, run.place)),
      el("td", { class: "when", title: about.date ? "When it was recorded" : "When the file was written" }, date(about.date ?? run.changed)),
      el("td", {}, devices(run)),
      el("td", {}, about.model ?? ""),
      el("td", { class: "n", "data-label": "Length", title: about.wall_ns ? `${about.wall_ns} ns` : null }, about.wall_ns === undefined || isFleet(run) ? bytes(run.bytes) : duration(about.wall_ns)),
      el("td", { class: "n", "data-label": "Step", title: about.steps ? `the median of ${about.steps} steps` : null }, duration(about.step_ns)),
      el("td", { class: "n", "data-label": "Busy" }, share(about.busy_share)),
      el("td", { class: "tags" }, tagsOf(run).map((tag) => el("button", { type: "button", class: "tag", onclick: () => { kept.search = search.value = `tag:${tag}`; rows(); } }, tag)),
        state.may_write && tagEditor(run)),
      el("td", { class: "verdict-cell" }, against(run)));
  }

  function against(run) {
    if (isFleet(run)) return "";
    if (run.id === kept.base) return el("button", { type: "button", class: "base", "aria-pressed": "true", onclick: () => choose(null) }, "is the base");
    const choice = el("button", { type: "button", class: "quiet", "aria-label": `Judge the others against ${run.name}`, onclick: () => choose(run.id) }, "make it the base");
    const base = state.runs.find((each) => each.id === kept.base);
    if (!base || run.is_recording || run.error) return choice;
    const found = verdicts.get(`${base.key} ${run.key}`);
    if (!found) return el("small", {}, asked.has(`${base.key} ${run.key}`) ? "comparing …" : "");
    if (found instanceof Error) return [el("small", { title: found.message }, "can't be compared"), " ", choice];
    const tone = { slower: "bad", faster: "good" }[found.outcome.split(" ")[0]] ?? "plain";
    const text = found.ratio === null || tone === "plain" ? found.outcome : `${found.outcome} ${found.ratio.toFixed(3)} ×`;
    return [el("a", { class: `outcome ${tone}`, href: `#/compare/${base.id}/${run.id}`, title: found.headline }, text), " ", choice];
  }

  function choose(id) {
    kept.base = id;
    rows();
    say(id ? `The base is ${state.runs.find((run) => run.id === id)?.name}` : "No base");
  }

  function judge(shown) {
    const base = state.runs.find((run) => run.id === kept.base);
    if (!base) return;
    for (const run of shown.filter((each) => each !== base && !isFleet(each) && !each.is_recording && !each.error).slice(0, MOST_VERDICTS)) {
      const key = `${base.key} ${run.key}`;
      if (verdicts.has(key) || asked.has(key)) continue;
      asked.add(key);
      jobs.run("verdict", { base: base.id, candidate: run.id })
        .then((job) => verdicts.set(key, job.result), (error) => verdicts.set(key, error))
        .finally(() => { asked.delete(key); if (table.isConnected) rows(); });
    }
  }

  place.replaceChildren(
    el("h1", { class: "unseen" }, "Runs"),
    el("div", { class: "tools" }, search, count, el("span", { class: "space" }), state.may_write && addButton(), compare),
    table, note);
  rows();
  return { update(now) { state = now; rows(); } };
}
