// A box for questions in SQL, the tables that there are, and the rows of the answer.

import * as api from "./api.js";
import * as jobs from "./jobs.js";
import { el, say } from "./dom.js";

const FIRST = "select kernel, count(*) as launches, sum(dur_ns) as total_ns\nfrom launches\ngroup by kernel\norder by total_ns desc";
const FIRST_OF_FLEET = "select model, gpu, count(*) as traces, sum(kernel_ns) as kernel_ns\nfrom traces\ngroup by model, gpu\norder by kernel_ns desc";
const written = new Map(); // by run: the question, while the app is open

export async function showSql(body, run) {
  const box = el("textarea", { id: "query", rows: "6", spellcheck: "false", "aria-label": "Question in SQL" });
  box.value = written.get(run.id) ?? (run.kind === "fleet" ? FIRST_OF_FLEET : FIRST);
  box.oninput = () => written.set(run.id, box.value);
  const answer = el("div", { class: "answer" });
  const limit = el("select", { "aria-label": "Rows at most" }, [100, 1000, 10000].map((rows) => el("option", { value: String(rows), selected: rows === 1000 }, `${rows.toLocaleString("en")} rows`)));
  const go = () => jobs.follow(answer, "query", { run: run.id, query: box.value, most_rows: Number(limit.value) }, (job) => rows(answer, job, run));
  box.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); go(); }
  };
  const names = el("div", { class: "names" });
  body.replaceChildren(
    el("div", { class: "sql" },
      el("div", { class: "ask" }, box, el("div", { class: "tools" }, el("button", { type: "button", id: "go", onclick: go }, "Answer"), limit, el("small", {}, "Ctrl+Enter")), answer),
      el("details", { class: "tables", open: matchMedia("(min-width: 60rem)").matches }, el("summary", {}, "Tables"), names)));
  names.replaceChildren(...(await api.tables(run.kind)).map((table) => tableLine(table, box)));
}

function tableLine(table, box) {
  const insert = (text) => { box.setRangeText(text, box.selectionStart, box.selectionEnd, "end"); box.focus(); box.oninput(); };
  return el("details", {}, el("summary", { title: table.row }, el("code", {}, table.name)),
    el("p", { class: "note" }, table.row),
    el("ul", {}, table.columns.map((column) => el("li", {},
      el("button", { type: "button", class: "quiet", title: column.meaning, onclick: () => insert(column.name) }, el("code", {}, column.name)), " ", el("small", {}, column.type)))));
}

function rows(place, job, run) {
  const { columns, rows, more } = job.result;
  const number = (text, column) => (column.is_number && text !== null && /^-?\d+$/.test(text) ? text.replace(/\B(?=(\d{3})+(?!\d))/g, ",") : text);
  const cell = (text, column) => el("td", { class: column.is_number ? "n" : "long", title: text !== null && text.length > 80 ? text : null }, text === null ? el("small", {}, "null") : number(text, column));
  const shown = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"}${more ? ", and there are more" : ""} in ${job.seconds.toFixed(1)} s`;
  say(shown);
  place.replaceChildren(
    el("div", { class: "tools" }, el("output", {}, shown), el("span", { class: "space" }), el("button", { type: "button", onclick: () => save(columns, rows, run) }, "Save as CSV")),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answer" },
      el("table", {}, el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col", class: column.is_number ? "n" : null, title: column.type }, column.name)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text, at) => cell(text, columns[at]))))))));
}

function save(columns, rows, run) {
  const quoted = (text) => (text === null ? "" : /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [columns.map((column) => column.name), ...rows].map((row) => row.map(quoted).join(","));
  const address = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
  el("a", { href: address, download: `${run.name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
