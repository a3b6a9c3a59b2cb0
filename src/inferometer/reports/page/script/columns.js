// Columns that fit: a table that is too wide gets denser, then does without its most spare columns, until they are asked
// for. A phone scrolls instead: there no choice of columns would be wide enough.

const roomy = matchMedia("(min-width: 48rem)");

class Fitting {
  constructor(grid) {
    this.grid = grid;
    this.box = grid.table.parentElement;
    this.left = new Set();
    this.empty = new Set();
    this.isWhole = false;
    grid.columns.onclick = () => {
      this.isWhole = !this.isWhole;
      this.fit();
    };
    new ResizeObserver(() => this.resized()).observe(this.box);
  }

  resized() {
    if (this.box.clientWidth === this.width || root.classList.contains("printing")) return;
    this.width = this.box.clientWidth;
    if (this.width) this.fit();
  }

  // Where all groups are folded, columns that only their rows have would be empty.
  shown() {
    const { grid } = this;
    const isFolded = grid.isGrouped && !grid.words.length && grid.groups.every((group) => !group.open);
    const has = (column) => grid.groups.some(({ head }) => head.cells[column].textContent.trim());
    const empty = grid.heads.flatMap((head, column) => (isFolded && column && !has(column) ? [column] : []));
    const isSame = empty.length === this.empty.size;
    this.empty = new Set(empty);
    if (isSame || !this.width) this.apply();
    else this.fit();
  }

  fit() {
    this.leave([]);
    this.grid.table.classList.remove("dense");
    if (root.classList.contains("printing")) return; // paper has all of them
    if (roomy.matches && this.excess() > 0) this.grid.table.classList.add("dense");
    if (roomy.matches && !this.isWhole) this.leave(this.tooMany());
    const { columns } = this.grid;
    const names = [...this.left].map((column) => this.grid.titles[column]);
    columns.hidden = !names.length && !this.isWhole;
    columns.textContent = this.isWhole ? "Fewer columns" : `${names.length} more ${names.length === 1 ? "column" : "columns"}`;
    columns.title = names.join(", ");
  }

  excess() {
    return this.grid.table.offsetWidth - this.box.clientWidth;
  }

  // The last of the most spare ones first; never the one that says what a row is.
  tooMany() {
    let excess = this.excess();
    const { heads } = this.grid;
    const spare = (column) => Number(heads[column].dataset.spare);
    const order = heads.map((head, column) => column).slice(1).sort((a, b) => spare(b) - spare(a) || b - a);
    const left = [];
    for (const column of order) {
      if (excess <= 0) break;
      if (this.empty.has(column)) continue;
      excess -= heads[column].offsetWidth;
      left.push(column);
    }
    return left;
  }

  leave(columns) {
    this.left = new Set(columns);
    this.apply();
  }

  apply() {
    for (const row of this.grid.table.rows) {
      for (let column = 1; column < row.cells.length; column += 1) {
        row.cells[column].hidden = this.left.has(column) || this.empty.has(column);
      }
    }
  }
}
