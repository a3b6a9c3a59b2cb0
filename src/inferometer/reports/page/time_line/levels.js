// What is shorter than 2^k ns, merged into slices of 2^k ns, for each row when a scale first asks for it.
// A level of a row: `single`, the places of events that take 2^k ns or more, and `slices`, columns by slice and category;
// `shortest` is how long the shortest of the single ones takes.

const STRIDE = 3; // levels
const COLUMNS = ["at", "category", "ns", "count", "longest", "longestNs"];

function noSlices() {
  return { n: 0, ...Object.fromEntries(COLUMNS.map((column) => [column, new Float64Array(0)])) };
}

class RowLevels {
  // `first` and `last` bound the row's events, `base` are the slices of its finest level.
  constructor(line, first, last, level, base) {
    this.line = line;
    this.finest = level;
    const single = new Uint32Array(last - first);
    let shortest = Infinity;
    for (let i = 0; i < single.length; i += 1) {
      single[i] = first + i;
      if (line.dur[first + i] < shortest) shortest = line.dur[first + i];
    }
    this.known = new Map([[level, { level, single, shortest, slices: base }]]);
  }

  at(level) {
    const wanted = Math.max(level, this.finest);
    let known = this.known.get(wanted);
    if (!known) {
      // The first one is drawn soonest if it is made of the finest at once, the others of the step before: that is quick.
      const step = this.known.size > 1 ? Math.ceil(wanted / STRIDE - 1) * STRIDE : this.finest;
      known = merge(this.line, this.at(Math.max(step, this.finest)), wanted);
      this.known.set(wanted, known);
    }
    return known;
  }

  // Makes the next step that isn't known; false where all are.
  prepare() {
    const coarsest = Math.max(...this.known.keys());
    let step = this.finest;
    while (this.known.has(step) && step < coarsest) step = (Math.floor(step / STRIDE) + 1) * STRIDE;
    if (step >= coarsest) return false;
    this.at(step);
    return true;
  }
}

function merge(line, finer, level) {
  const { start, dur } = line;
  const size = 2 ** level;
  const old = finer.slices;
  if (finer.shortest >= size && !old.n) return { ...finer, level };
  const { single, merged, shortest } = parted(line, finer.single, size);
  const short = merged.length;
  const factor = 2 ** (level - finer.level);
  const slices = new Slices(line, 2 * short + old.n);
  let [i, j] = [0, 0];
  const eventAt = () => (i < short ? Math.floor(start[merged[i]] / size) : Infinity);
  const sliceAt = () => (j < old.n ? Math.floor(old.at[j] / factor) : Infinity);
  let [ofEvent, ofSlice] = [eventAt(), sliceAt()];
  while (ofEvent < Infinity || ofSlice < Infinity || slices.hasRest) {
    const at = Math.min(ofEvent, ofSlice, slices.hasRest ? slices.restAt : Infinity);
    slices.begin(at);
    for (; ofSlice === at; ofSlice = sliceAt()) {
      slices.add(old.category[j], old.ns[j], old.count[j], old.longest[j], old.longestNs[j]);
      j += 1;
    }
    for (; ofEvent === at; ofEvent = eventAt()) {
      slices.event(merged[i], (at + 1) * size);
      i += 1;
    }
    slices.end();
  }
  return { level, single, shortest, slices: slices.done() };
}

// Events that take so long or longer, and those that are to be merged.
function parted({ dur }, events, size) {
  let short = 0;
  for (let i = 0; i < events.length; i += 1) if (dur[events[i]] < size) short += 1;
  const single = new Uint32Array(events.length - short);
  const merged = new Uint32Array(short);
  let [kept, gone, shortest] = [0, 0, Infinity];
  for (let i = 0; i < events.length; i += 1) {
    const event = events[i];
    if (dur[event] < size) {
      merged[gone] = event;
      gone += 1;
    } else {
      single[kept] = event;
      kept += 1;
      if (dur[event] < shortest) shortest = dur[event];
    }
  }
  return { single, merged, shortest };
}

// Builds slices in order; what reaches into the next slice waits for it. Its columns grow as they fill: of a million
// events few slices are left.
class Slices {
  constructor(line, most) {
    this.line = line;
    this.n = 0;
    this.most = most;
    this.room(Math.min(most, 1024));
    const categories = line.categories.length;
    this.ns = new Float64Array(categories);
    this.count = new Float64Array(categories);
    this.longest = new Uint32Array(categories);
    this.longestNs = new Float64Array(categories).fill(-1);
    this.touched = new Uint16Array(categories);
    this.touches = 0;
    this.hasRest = false;
    this.restAt = 0;
    this.restNs = 0;
    this.restEvent = 0;
  }

  room(size) {
    const old = this.out;
    this.size = size;
    this.out = {
      at: new Float64Array(size), category: new Uint16Array(size), ns: new Float64Array(size),
      count: new Float64Array(size), longest: new Uint32Array(size), longestNs: new Float64Array(size),
    };
    if (old) for (const column of COLUMNS) this.out[column].set(old[column]);
  }

  begin(at) {
    this.slice = at;
    if (this.hasRest && this.restAt === at) {
      this.hasRest = false;
      const { name, category, dur } = this.line;
      const called = name[this.restEvent];
      this.add(category[called], this.restNs, 0, called, dur[this.restEvent]);
    }
  }

  event(event, end) {
    const { start, dur, name, category } = this.line;
    const called = name[event];
    const first = Math.min(start[event] + dur[event], end) - start[event];
    this.add(category[called], first, 1, called, dur[event]);
    if (dur[event] > first) {
      this.hasRest = true;
      this.restAt = this.slice + 1;
      this.restNs = dur[event] - first;
      this.restEvent = event;
    }
  }

  add(category, ns, count, longest, longestNs) {
    if (this.longestNs[category] < 0) this.touch(category);
    this.ns[category] += ns;
    this.count[category] += count;
    if (longestNs > this.longestNs[category]) {
      this.longest[category] = longest;
      this.longestNs[category] = longestNs;
    }
  }

  // Categories stay in order: most slices have one or two.
  touch(category) {
    const { touched } = this;
    let place = this.touches;
    for (; place > 0 && touched[place - 1] > category; place -= 1) touched[place] = touched[place - 1];
    touched[place] = category;
    this.touches += 1;
  }

  end() {
    if (this.n + this.touches > this.size) this.room(Math.min(this.most, 2 * this.size + this.touches));
    for (let i = 0; i < this.touches; i += 1) this.put(this.touched[i]);
    this.touches = 0;
  }

  put(category) {
    const { out, n } = this;
    out.at[n] = this.slice;
    out.category[n] = category;
    out.ns[n] = this.ns[category];
    out.count[n] = this.count[category];
    out.longest[n] = this.longest[category];
    out.longestNs[n] = this.longestNs[category];
    this.ns[category] = 0;
    this.count[category] = 0;
    this.longestNs[category] = -1;
    this.n += 1;
  }

  done() {
    const slices = { n: this.n };
    for (const column of COLUMNS) slices[column] = this.out[column].slice(0, this.n);
    return slices;
  }
}

// The first place from `low` whose value is not below `wanted`.
function lowerBound(values, wanted, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// As that, of the values at `places`.
function lowerBoundAt(values, places, wanted) {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[places[middle]] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
