// Tables: sorted, filtered, folded. The rows stay as they were written; only their order and visibility change.

const NUMBERS = new Set(["count", "ns", "share", "bytes", "ratio", "number"]);

const textOf = (cell) => (cell.querySelector(".long code, .label") || cell).textContent;
const seenOf = (cell) => cell.querySelector(".long summary")?.textContent || "";
const numberOf = (cell) => Number((cell.dataset.value ?? cell.textContent).replaceAll(",", "").replace(/^$/, "-"));

class Grid {
  constructor(element) {
    this.element = element;
    this.table = element.querySelector("table");
    this.body = this.table.tBodies[0];
    this.heads = [...this.table.tHead.rows[0].cells];
    this.titles = this.heads.map((head) => head.textContent);
    this.kinds = this.heads.map((head) => head.dataset.kind);
    this.summed = this.heads.map((head, column) => ("summed" in head.dataset ? column : -1)).filter((n) => n >= 0);
    this.rows = all("tr.row", this.body);
    this.rest = all("tr.rest", this.body);
    this.groups = all("tr.group", this.body).map((head) => ({
      head,
      rows: this.rows.filter((row) => row.dataset.group === head.dataset.group),
      rest: this.rest.filter((row) => row.dataset.group === head.dataset.group),
      open: !("folded" in element.dataset),
    }));
    this.order = null;
    this.words = [];
    this.isGrouped = this.groups.length > 0;
    this.tools();
    this.sorters();
    this.groups.forEach((group) => this.toggle(group));
    this.fitting = new Fitting(this);
    this.show();
  }

  tools() {
    this.status = make("output");
    const name = this.table.caption.textContent;
    const filter = make("input", { type: "search", placeholder: "Filter", autocomplete: "off", spellcheck: false });
    filter.setAttribute("aria-label", `Filter ${name}`);
    filter.oninput = () => this.filter(filter.value);
    this.field = filter;
    const tools = make("div", { className: "tools" });
    if (this.rows.length > 5) tools.append(filter);
    if (this.groups.length) tools.append(...this.groupTools());
    const csv = make("button", { type: "button", className: "csv", textContent: "CSV" });
    csv.setAttribute("aria-label", `CSV of the rows shown of ${name}`);
    csv.onclick = () => save(`${name}.csv`, csvOf(this));
    this.columns = make("button", { type: "button", className: "columns", hidden: true });
    tools.append(this.status, this.columns, csv);
    if (this.rows.length > 1) this.element.prepend(tools);
  }

  groupTools() {
    this.folder = make("button", { type: "button", className: "fold" });
    this.folder.onclick = () => {
      const open = this.groups.some((group) => !group.open);
      this.groups.forEach((group) => { group.open = open; });
      this.show();
    };
    const by = make("button", { type: "button", className: "by", textContent: `By ${this.element.dataset.group}` });
    by.setAttribute("aria-pressed", "true");
    by.onclick = () => {
      this.isGrouped = !this.isGrouped;
      by.setAttribute("aria-pressed", String(this.isGrouped));
      this.show();
    };
    return [by, this.folder];
  }

  sorters() {
    this.heads.forEach((head, column) => {
      const sorter = make("button", { type: "button", textContent: head.textContent });
      sorter.onclick = () => this.sort(column);
      head.replaceChildren(sorter);
      head.setAttribute("aria-sort", "none");
    });
  }

  toggle(group) {
    const label = group.head.cells[0].querySelector(".label");
    group.toggle = make("button", { type: "button", className: "toggle" });
    group.toggle.setAttribute("aria-label", `Rows of ${label.textContent}`);
    group.toggle.onclick = () => {
      group.open = !group.open;
      this.show();
    };
    label.before(group.toggle);
    group.count = group.head.cells[0].querySelector(".rows");
    group.own = [...group.head.cells].map((cell) => cell.textContent);
    group.of = group.count.textContent;
  }

  sort(column) {
    const first = NUMBERS.has(this.kinds[column]) ? -1 : 1;
    const before = this.order && this.order.column === column ? this.order.sign : 0;
    this.sortBy(before === -first ? null : { column, sign: before === first ? -first : first });
    this.changed();
  }

  sortBy(order) {
    this.order = order;
    this.heads.forEach((head, each) => {
      const sign = order && each === order.column ? order.sign : 0;
      head.setAttribute("aria-sort", sign ? (sign > 0 ? "ascending" : "descending") : "none");
    });
    this.show();
  }

  filter(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.show();
    this.changed();
  }

  changed() {
    this.element.dispatchEvent(new CustomEvent("arranged", { bubbles: true, detail: this }));
  }

  compare({ column, sign }) {
    if (!NUMBERS.has(this.kinds[column])) {
      return (a, b) => sign * textOf(a.cells[column]).localeCompare(textOf(b.cells[column]), "en");
    }
    return (a, b) => {
      const [x, y] = [numberOf(a.cells[column]), numberOf(b.cells[column])];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return sign * (x - y);
    };
  }

  matches(row) {
    const text = [...row.cells].map((cell) => `${textOf(cell)} ${seenOf(cell)}`).join(" ").toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  show() {
    const isFiltered = this.words.length > 0;
    const found = new Set(isFiltered ? this.rows.filter((row) => this.matches(row)) : this.rows);
    const lines = this.isGrouped ? this.groupedLines(found, isFiltered) : this.plainLines(found, isFiltered);
    for (const row of this.rest) if (!row.dataset.group) lines.push([row, !isFiltered]);
    for (const [line, isSeen] of lines) line.hidden = !isSeen;
    this.body.append(...lines.map(([line]) => line));
    this.found = lines.flatMap(([line]) => (found.has(line) ? [line] : []));
    this.table.classList.toggle("grouped", this.isGrouped);
    if (this.folder) {
      this.folder.hidden = !this.isGrouped;
      this.folder.textContent = this.groups.some((group) => !group.open) ? "Unfold all" : "Fold all";
    }
    this.foot(isFiltered);
    this.fitting.shown();
  }

  sorted(rows) {
    return this.order ? [...rows].sort(this.compare(this.order)) : rows;
  }

  groupedLines(found, isFiltered) {
    const lines = [];
    for (const group of this.groups) this.sumUp(group, isFiltered ? group.rows.filter((row) => found.has(row)) : null);
    for (const group of this.inOrder()) {
      const open = group.open || isFiltered;
      const isFound = !isFiltered || group.rows.some((row) => found.has(row));
      group.toggle.setAttribute("aria-expanded", String(open));
      lines.push([group.head, isFound]);
      for (const row of this.sorted(group.rows)) lines.push([row, open && found.has(row)]);
      for (const row of group.rest) lines.push([row, open && !isFiltered]);
    }
    return lines;
  }

  plainLines(found, isFiltered) {
    return [
      ...this.groups.map((group) => [group.head, false]),
      ...this.sorted(this.rows).map((row) => [row, found.has(row)]),
      ...this.groups.flatMap((group) => group.rest.map((row) => [row, !isFiltered])),
    ];
  }

  inOrder() {
    if (!this.order) return this.groups;
    const order = this.compare(this.order);
    const isSummed = this.summed.includes(this.order.column) || this.order.column === 0;
    const first = (group) => (isSummed ? group.head : [...group.rows].sort(order)[0] || group.head);
    return [...this.groups].sort((a, b) => order(first(a), first(b)));
  }

  sumUp(group, rows) {
    group.count.textContent = rows ? `${rows.length} of ${group.of}` : group.of;
    for (const column of this.summed.filter((each) => each > 0)) {
      group.head.cells[column].textContent = rows ? this.sum(rows, column) : group.own[column];
    }
  }

  sum(rows, column) {
    const total = rows.reduce((sum, row) => sum + numberOf(row.cells[column]), 0);
    return Number.isNaN(total) ? "" : formatted(this.kinds[column], total);
  }

  // The sums of what is shown: of all rows, those that are only added up too, or of those that the filter found.
  foot(isFiltered) {
    this.table.tFoot?.remove();
    const unseen = isFiltered && this.rest.length ? "; rows that are not on the page are not searched" : "";
    const count = grouped(String(this.rows.length));
    this.status.textContent = isFiltered ? `${this.found.length} of ${count} rows${unseen}` : `${count} rows`;
    const rows = isFiltered ? this.found : [...this.rows, ...this.rest];
    if (!this.summed.length || rows.length < (isFiltered ? 1 : 2)) return;
    const label = isFiltered ? "Sum of these rows" : "Sum of all rows";
    const cells = this.heads.map((head, column) => make(column ? "td" : "th", {
      className: head.className,
      textContent: column === 0 ? label : this.summed.includes(column) ? this.sum(rows, column) : "",
    }));
    if (cells.slice(1).every((cell) => !cell.textContent)) return;
    this.table.append(make("tfoot", {}, make("tr", {}, ...cells)));
  }
}

const grids = all(".grid").map((element) => new Grid(element));

// A number says itself exactly, a short name in full.

document.addEventListener("mouseover", (event) => {
  const cell = event.target.closest?.("[data-value], .long summary");
  if (!cell || cell.title) return;
  if (cell.tagName === "SUMMARY") {
    cell.title = cell.nextElementSibling.textContent;
    return;
  }
  const kind = cell.dataset.kind || cell.closest("table").tHead.rows[0].cells[cell.cellIndex].dataset.kind;
  const value = cell.dataset.value;
  cell.title = kind === "ns" ? `${grouped(value.replace(/\.0$/, ""))} ns` : kind === "bytes" ? `${grouped(value)} B` : value;
});

document.addEventListener("toggle", (event) => {
  const name = event.target;
  if (!name.matches?.(".long") || name.querySelector(".copy")) return;
  const copy = make("button", { type: "button", className: "copy", textContent: "Copy" });
  copy.onclick = async () => {
    await toClipboard(name.querySelector("code").textContent);
    copy.textContent = "Copied";
  };
  name.append(copy);
}, true);
