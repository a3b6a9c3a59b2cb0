// Where rows come from. A source has
//   about    what the header says: lanes, names, categories, counters, length, origin, marks
//   line     columns by event: start, dur, name, tie; `category` by name
//   rows(lanes, start, end, pixels)  a promise of what to draw: for each row of these lanes, its number, and `level`,
//            `single` with the places of events from `from` to `to`, `slices` from `sliceFrom` to `sliceTo`
//   whole    whether all events that it will ever have are in `line`: then search, sums and ties need nobody else
// A server's source puts what it is sent into a `line` of its own, in the same form.

class Line {
  constructor({ header, columns }) {
    this.rowEnds = partEnds(columns.row_events);
    this.dur = columns.dur;
    this.start = startsOf(columns.gap, columns.dur, this.rowEnds);
    this.name = columns.name;
    this.packedTie = columns.tie;
    this.category = Uint16Array.from(header.name_category);
    this.categories = header.categories;
    this.sliceEnds = partEnds(columns.row_slices);
    this.slices = {
      at: startsOf(columns.at, null, this.sliceEnds), category: columns.category, ns: columns.ns, count: columns.count,
      longest: columns.longest, longestNs: columns.longest_ns,
    };
    this.samples = samplesOf(header, columns);
  }

  // Unpacked when it is asked for: a page of a million events is drawn before anyone follows one.
  get tie() {
    this.ties ||= summed(this.packedTie, -1); // -1: none
    return this.ties;
  }

  set tie(ties) { this.ties = ties; }

  rowOf(event) {
    return lowerBound(this.rowEnds, event + 1) - 1;
  }

  slicesOf(row) {
    const [first, last] = [this.sliceEnds[row], this.sliceEnds[row + 1]];
    if (first === last) return noSlices();
    const own = { n: last - first };
    for (const column of COLUMNS) own[column] = this.slices[column].subarray(first, last);
    return own;
  }
}

function samplesOf(header, columns) {
  if (!columns.time) return [];
  const ends = partEnds(header.counters.map((counter) => counter[3]));
  const time = startsOf(columns.time, null, ends);
  return header.counters.map(([group, name, unit], index) => ({
    group, name, unit, time: time.subarray(ends[index], ends[index + 1]), value: columns.value.subarray(ends[index], ends[index + 1]),
  }));
}

class EmbeddedSource {
  constructor(packed) {
    this.about = packed.header;
    this.line = new Line(packed);
    this.whole = true;
    this.levels = new Map();
    this.rowLane = [];
    this.about.lanes.forEach((lane, index) => {
      lane.index = index;
      lane.firstRow = this.rowLane.length;
      for (let row = 0; row < lane.rows; row += 1) this.rowLane.push(index);
    });
  }

  row(row) {
    let levels = this.levels.get(row);
    if (!levels) {
      const { rowEnds } = this.line;
      const { level } = this.about.lanes[this.rowLane[row]];
      levels = new RowLevels(this.line, rowEnds[row], rowEnds[row + 1], level, this.line.slicesOf(row));
      this.levels.set(row, levels);
    }
    return levels;
  }

  // Makes what zooming needs, a step at a time, while there is nothing else to do.
  prepare() {
    const whenIdle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 100));
    const step = () => {
      for (const levels of this.levels.values()) if (levels.prepare()) return whenIdle(step);
      return undefined;
    };
    whenIdle(step);
  }

  async rows(lanes, start, end, pixels) {
    const level = Math.max(0, Math.ceil(Math.log2((end - start) / pixels)));
    const found = [];
    for (const lane of lanes) {
      const { firstRow, rows } = this.about.lanes[lane];
      for (let row = firstRow; row < firstRow + rows; row += 1) found.push(this.cut(row, level, start, end));
    }
    return found;
  }

  cut(row, wanted, start, last) {
    const end = last >= this.about.length ? Infinity : last; // an instant at the very end is seen, too
    const { level, single, slices } = this.row(row).at(wanted);
    const size = 2 ** level;
    let from = lowerBoundAt(this.line.start, single, start);
    if (from && this.line.start[single[from - 1]] + this.line.dur[single[from - 1]] > start) from -= 1;
    const to = lowerBoundAt(this.line.start, single, end);
    const sliceFrom = lowerBound(slices.at, Math.floor(start / size));
    const sliceTo = lowerBound(slices.at, Math.ceil(end / size));
    return { row, level, line: this.line, single, from, to, slices, sliceFrom, sliceTo };
  }
}
