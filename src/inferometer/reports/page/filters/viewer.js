// The filters of a fleet's page: a choice for each, and every table anew of the traces that have all that is chosen.
// What is chosen stands in the address: `#filters?model=llama&gpu=H100+SXM`; `model=` is what no trace says.

const NOT_SAID = "not said";
const PHASE = "phase";

function headOf(column) {
  const head = make("th", { scope: "col", className: column.right ? "n" : "", textContent: column.title });
  head.dataset.kind = column.kind;
  head.dataset.spare = column.spare;
  if (column.summed) head.dataset.summed = "";
  return head;
}

function fillCell(cell, column, value) {
  if (column.right) {
    cell.className = "n";
    cell.textContent = typeof value === "number" ? formatted(column.kind, value) : value ?? "-";
    if (typeof value === "number") cell.dataset.value = String(value);
  } else if (Array.isArray(value)) {
    const [short, whole] = value;
    cell.append(make("details", { className: "long" }, make("summary", { textContent: short }), make("code", { textContent: whole })));
  } else cell.textContent = value ?? "";
}

function lineOf(columns, values, kind, most) {
  return make("tr", { className: kind }, ...columns.map((column, n) => {
    const cell = make(n ? "td" : "th", n ? {} : { scope: "row" });
    fillCell(cell, column, values[n]);
    if (most[n] && values[n] !== null) {
      cell.classList.add("bar");
      cell.style.setProperty("--bar", values[n] / most[n]);
    }
    return cell;
  }));
}

function gridOf(title, columns, rows, rest, restLabel) {
  const most = columns.map((column, n) => (column.over && !column.own ? Math.max(...rows.map((row) => row[n] ?? 0)) : 0));
  const lines = rows.map((row) => lineOf(columns, row, "row", most));
  if (rest) {
    const line = lineOf(columns, rest, "rest", []);
    for (const [n, cell] of [...line.cells].entries()) if (rest[n] === null) cell.textContent = "";
    line.cells[0].replaceChildren(make("span", { className: "label", textContent: restLabel }));
    lines.push(line);
  }
  const table = make("table", {}, make("caption", { className: "unseen", textContent: title }),
    make("thead", {}, make("tr", {}, ...columns.map(headOf))), make("tbody", {}, ...lines));
  const scroll = make("div", { className: "scroll", tabIndex: 0 }, table);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `Table: ${title}`);
  return make("div", { className: "grid" }, scroll);
}

class Filters {
  constructor(holder) {
    this.data = JSON.parse(document.getElementById(holder.dataset.figure).textContent);
    this.holder = holder;
    this.places = all(".filtered").map((place) => ({ place, ofAll: place.firstElementChild, table: this.data.tables[place.dataset.name], grid: null }));
    this.choices = [...this.data.filters, { name: PHASE, values: this.data.phases }]
      .filter(({ values }) => values.length > 1).map((filter) => this.choice(filter));
    this.status = make("output");
    this.reset = make("button", { type: "button", textContent: "All traces", hidden: true });
    this.reset.onclick = () => this.choose(new URLSearchParams());
    holder.append(...this.choices.map(({ label }) => label), this.status, this.reset);
    const section = holder.closest("section");
    section.addEventListener("link", ({ detail }) => this.choose(detail));
    this.show();
    if (location.hash.startsWith(`#${section.id}?`)) follow();
  }

  choice({ name, values }) {
    const select = make("select");
    const title = name === "gpu" ? "GPU" : name[0].toUpperCase() + name.slice(1);
    select.append(make("option", { textContent: "all", value: "" }),
      ...values.map((value, place) => make("option", { textContent: value ?? NOT_SAID, value: String(place) })));
    select.onchange = () => this.changed();
    return { name, values, select, label: make("label", { className: "choose" }, make("span", { textContent: title }), select) };
  }

  placeOf(name) {
    const choice = this.choices.find((each) => each.name === name);
    return choice?.select.value ? Number(choice.select.value) : null;
  }

  choose(wanted) {
    for (const { name, values, select } of this.choices) {
      const value = wanted.get(name);
      const place = values.findIndex((each) => (each ?? "") === value);
      select.value = wanted.has(name) && place >= 0 ? String(place) : "";
    }
    this.changed();
  }

  changed() {
    const said = new URLSearchParams(this.choices.filter(({ select }) => select.value)
      .map(({ name, values, select }) => [name, values[Number(select.value)] ?? ""]));
    try {
      history.replaceState(null, "", `#${this.holder.closest("section").id}${String(said) && `?${said}`}`);
    } catch { /* a frame without an address of its own */ }
    this.show();
  }

  show() {
    const chosen = this.data.filters.map(({ name }) => this.placeOf(name));
    const phasePlace = this.placeOf(PHASE);
    const phase = phasePlace === null ? undefined : this.data.phases[phasePlace];
    const isIn = chosenCells(this.data, chosen);
    const traces = this.data.traces.reduce((sum, count, cell) => sum + (isIn[cell] ? count : 0), 0);
    const count = this.data.traces.reduce((sum, each) => sum + each, 0);
    const isOfAll = chosen.every((place) => place === null);
    this.isPlain = isOfAll && phase === undefined;
    this.reset.hidden = this.isPlain;
    this.status.textContent = isOfAll ? `${grouped(String(count))} traces` : `${grouped(String(traces))} of ${grouped(String(count))} traces`;
    for (const each of this.places) {
      const isSame = this.isPlain || (isOfAll && !each.table.phases);
      this.fill(each, isSame ? null : each.table.keys ? chosenRows(each.table, chosen, phase) : summedRows(each.table, isIn, phase));
    }
  }

  // The table of what is chosen in the place of that of all; null: that of all is back.
  fill(each, found) {
    const { place, ofAll, table } = each;
    if (each.grid) grids.splice(grids.indexOf(each.grid), 1);
    each.grid = null;
    ofAll.hidden = found !== null;
    place.replaceChildren(ofAll);
    if (!found) return;
    if (!found.rows.length) {
      place.append(make("p", { className: "words note", textContent: "None of the traces chosen has any." }));
    } else {
      const element = gridOf(table.title, table.columns, found.rows, found.rest, this.restLabel(table));
      place.append(element);
      each.grid = new Grid(element);
      grids.push(each.grid);
    }
    if (table.note) place.append(make("p", { className: "words note", textContent: table.note }));
  }

  restLabel(table) {
    const more = table.things - table.count;
    return `up to ${grouped(String(more))} more ${more === 1 ? "row" : "rows"}, which the page leaves out`;
  }
}

document.querySelectorAll(".filters").forEach((holder) => new Filters(holder));
