// What the reader sees. All text of models and devices is put in as text, never as HTML.

const MOST_LINES = 400;
const EVERY_MS = 200; // tables are drawn between two submits, and not between any two

const digits = (number, most = 1) => number.toLocaleString("en", { maximumFractionDigits: most, minimumFractionDigits: most });
const mega = (bytes) => `${digits(bytes / 1e6)} MB`;

export class View {
  constructor(document) {
    this.at = (id) => document.getElementById(id);
    this.make = (tag, text = "", kind = "") => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (kind) element.className = kind;
      return element;
    };
    this.drawn = 0;
    this.timed = new Map();
  }

  state(text) {
    this.at("state").textContent = text;
    this.at("state").className = /^Failed|gone/.test(text) ? "state bad" : "state";
  }

  adapter({ name, features }) {
    this.device = [name, ...features].join(" · ");
    this.at("about").textContent = this.device;
  }

  program({ name, kernel_path: path }) {
    this.at("model").textContent = name;
    this.at("about").textContent = [`kernel path ${path}`, this.device].join(" · ");
  }

  progress(done, total) {
    this.at("bar").hidden = done >= total;
    this.at("filled").style.width = `${(100 * done) / total}%`;
    this.at("loaded").textContent = `${mega(done)} of ${mega(total)}`;
  }

  line(level, time, module, text) {
    const list = this.at("log");
    const row = this.make("li", "", level);
    row.append(this.make("span", `${digits(time)} ms`), this.make("span", module), this.make("span", text));
    list.append(row);
    while (list.childElementCount > MOST_LINES) list.firstElementChild.remove();
    list.scrollTop = list.scrollHeight;
  }

  event({ kind, text }) {
    const answer = this.at("answer");
    if (kind === "prompt") answer.replaceChildren(this.make("span", text, "prompt"));
    if (kind === "text") {
      answer.append(text);
      answer.scrollTop = answer.scrollHeight;
    }
  }

  // An answer begins: its numbers start anew.
  begin(request, phases) {
    this.phases = phases;
    this.made = 0;
    this.asked = performance.now();
    this.firstAt = null;
    this.busy = null;
    this.untimed = 0;
    this.timed = new Map();
    for (const id of ["tokens", "first", "rate", "busy"]) this.at(id).textContent = "–";
    const prompt = this.at("answer").querySelector(".prompt");
    this.at("answer").replaceChildren(...(prompt ? [prompt] : []));
    this.state(request.timing === "timestamps" ? "Running, each dispatch timed" : "Running");
    this.draw();
  }

  submission({ passes, tokens, times, untimed, record, submit, wait, read }) {
    this.made += tokens.length;
    this.lastAt = performance.now();
    if (this.firstAt === null && tokens.length) {
      this.firstAt = this.lastAt;
      this.before = this.made;
    }
    this.untimed += untimed;
    let [number, summed] = [0, 0];
    for (const label of passes.flatMap(({ phases }) => phases.flatMap((phase) => this.phases[phase].map((d) => d.label)))) {
      const [begin, end] = [times[number], times[number + 1]];
      number += 2;
      if (begin == null) continue;
      const row = this.timed.get(label) ?? { calls: 0, ns: 0 };
      row.calls += 1;
      row.ns += end - begin;
      summed += end - begin;
      this.timed.set(label, row);
    }
    this.busy = summed ? summed / 1e6 / (record + submit + wait + read) : null;
    if (performance.now() - this.drawn > EVERY_MS) this.draw();
  }

  end(text) {
    this.draw();
    this.state(text);
  }

  draw() {
    this.drawn = performance.now();
    this.at("tokens").textContent = this.made ? String(this.made) : "–";
    if (this.firstAt !== null) this.at("first").textContent = digits(this.firstAt - this.asked);
    if (this.firstAt !== null && this.made > this.before) {
      this.at("rate").textContent = digits(((this.made - this.before) * 1000) / (this.lastAt - this.firstAt));
    }
    this.at("busy").textContent = this.busy == null ? "–" : `${digits(this.busy * 100)} %`;
    const rows = [...this.timed].sort(([, a], [, b]) => b.ns - a.ns);
    this.at("profile").hidden = !rows.length;
    this.at("untold").hidden = rows.length > 0;
    const total = rows.reduce((sum, [, { ns }]) => sum + ns, 0);
    const calls = rows.reduce((sum, [, each]) => sum + each.calls, 0);
    this.at("rows").replaceChildren(...rows.map(([label, each]) => this.row(label, each, total, rows[0][1].ns)));
    this.at("sums").replaceChildren(this.row("Sum", { calls, ns: total }, total, 0));
    this.at("lost").hidden = !this.untimed;
    this.at("lost").textContent = `${this.untimed} dispatches have no usable time and are in no row.`;
  }

  row(label, { calls, ns }, total, most) {
    const row = this.make("tr");
    const share = total ? ns / total : 0;
    const texts = [label, calls.toLocaleString("en"), digits(ns / 1e6, 2), `${digits(share * 100)} %`];
    const bar = this.make("td", "", "wide");
    if (most) {
      const filled = this.make("div", "", "share");
      filled.style.width = `${(100 * ns) / most}%`;
      bar.append(filled);
    }
    row.append(...texts.map((text) => this.make("td", text)), bar);
    return row;
  }
}
