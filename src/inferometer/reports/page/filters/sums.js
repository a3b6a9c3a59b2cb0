// What the filters of a fleet add up. A cell is a combination of what traces are filtered by; a table has, of each of
// its things, sums of each cell, and of each cell the sums of all things, those that the page leaves out among them.
// `reports/fleet/sums.py` writes it, `reports/fleet/rows.py` tables of rows that are only chosen.

// Which cells have all that is chosen: of each filter the place of a value, or null for any.
function chosenCells(data, chosen) {
  return data.cells.map((places) => places.every((place, n) => chosen[n] === null || chosen[n] === place));
}

// A sum that says when it isn't known: a strict one where a part isn't, another where no part is.
class Sum {
  constructor(isStrict) {
    this.isStrict = isStrict;
    this.value = 0;
    this.known = 0;
    this.unknown = 0;
  }

  add(value) {
    if (value === null) this.unknown += 1;
    else {
      this.value += value;
      this.known += 1;
    }
  }

  get total() {
    return (this.isStrict ? this.unknown > 0 : this.unknown > 0 && !this.known) ? null : this.value;
  }
}

function addUp(table, isIn) {
  const sums = () => table.values.map(({ strict }) => new Sum(strict));
  const things = Array.from({ length: table.count }, () => ({ sums: sums(), isThere: false }));
  const [of, cells] = table.of;
  of.forEach((thing, at) => {
    if (!isIn[cells[at]]) return;
    things[thing].isThere = true;
    things[thing].sums.forEach((sum, value) => sum.add(table.sums[value][at]));
  });
  const strict = new Set(table.values.filter((value) => value.strict).map(({ name }) => name));
  const whole = Object.fromEntries(Object.entries(table.whole).map(([name, parts]) => {
    const sum = new Sum(strict.has(name));
    parts.forEach((part, cell) => { if (isIn[cell]) sum.add(part); });
    return [name, sum.total];
  }));
  return { things, whole };
}

// A column's number of some sums: they are those of a thing, or of the rest.
function shownOf(column, sums, whole) {
  const value = sums[column.value];
  if (value === null || value === undefined) return null;
  if (!column.over) return (value * column.factor) / column.per;
  const over = column.own ? sums[column.over] : whole[column.over];
  return over ? (value * column.factor) / over : null;
}

// The rows of a table of sums: texts and numbers by column, the most first, then what isn't on the page.
function summedRows(table, isIn, phase) {
  const { things, whole } = addUp(table, isIn);
  const named = (sums) => Object.fromEntries(table.values.map(({ name }, n) => [name, sums[n].total]));
  const cellsOf = (sums, text) => table.columns.map((column) => ("text" in column ? text(column.text) : shownOf(column, sums, whole)));
  const isShown = (thing) => things[thing].isThere && (phase === undefined || !table.phases || table.phases[thing] === phase);
  const shown = things.map((thing, at) => at).filter(isShown);
  const first = (thing) => things[thing].sums[0].total ?? 0;
  shown.sort((a, b) => first(b) - first(a) || a - b);
  const rows = shown.map((thing) => cellsOf(named(things[thing].sums), (n) => table.names[n][thing]));
  return { rows, rest: phase === undefined || !table.phases ? restOf(table, things, whole) : null };
}

// What the things that the page leaves out have together, where it can be added up.
function restOf(table, things, whole) {
  if (table.things <= table.count) return null;
  const rest = Object.fromEntries(table.values.map(({ name }, n) => {
    const parts = things.filter(({ isThere }) => isThere).map(({ sums }) => sums[n].total);
    return [name, whole[name] === null || parts.includes(null) ? null : whole[name] - parts.reduce((sum, part) => sum + part, 0)];
  }));
  if (!rest[table.values[0].name]) return null;
  return table.columns.map((column) => (column.summed && !("text" in column) ? shownOf(column, rest, whole) : null));
}

// Rows that were found of all traces, and have what is chosen.
function chosenRows(table, chosen, phase) {
  const has = (row) => chosen.every((place, n) => place === null || !table.keys[n] || table.keys[n][row].includes(place))
    && (phase === undefined || table.phases[row] === phase);
  return { rows: table.rows.filter((cells, row) => has(row)), rest: null };
}
