// The time line at full detail: what the screen shows of all of it to begin with, and windows as one zooms in.

import * as api from "./api.js";
import * as jobs from "./jobs.js";
import { el, say } from "./dom.js";
import { EmbeddedSource, Line, Viewer, lowerBound, lowerBoundAt, sumTable, unpack } from "./time_line.js";

const MOST_WINDOWS = 64; // of one lane each
const MOST_EVENTS = 400_000; // that came by windows

// Rows as `time_line/source.js` wants them. Events keep their number, whatever comes: `line` grows at its end.
class ServerSource extends EmbeddedSource {
  constructor(packed, ask) {
    super(packed);
    this.ask = ask;
    this.whole = false;
    this.onMore = () => {};
    this.windows = new Map(); // by lane and block: rows, or null while they are asked for
    this.numbers = new Map(); // events by their place in the whole time line
    this.about.places.forEach((place, event) => this.numbers.set(place, event));
    this.names = new Map(this.about.names.map((name, at) => [name, at]));
    this.calls = this.about.calls.slice();
    this.first = this.calls.length;
    this.rowsOfMore = [];
    const ofFirst = this.line.rowOf.bind(this.line);
    this.line.rowOf = (event) => (event < this.first ? ofFirst(event) : this.rowsOfMore[event - this.first]);
    this.tie();
  }

  /** Calls whose events are here. */
  tie() {
    this.line.tie = Float64Array.from(this.calls, (place) => (place < 0 ? -1 : this.numbers.get(place) ?? -1));
  }

  async rows(lanes, start, end, pixels) {
    const found = await super.rows(lanes, start, end, pixels);
    const level = Math.max(0, Math.ceil(Math.log2((end - start) / pixels)));
    const merged = lanes.filter((lane) => this.about.lanes[lane].level > level);
    if (!merged.length) return found;
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, end - start)));
    const block = Math.floor(start / size);
    this.wish(merged, size, block, level);
    return found.map((answer) => this.finer(answer, this.rowLane[answer.row], size, block, level, start, end) ?? answer);
  }

  finer(answer, lane, size, block, level, start, end) {
    const rows = this.windows.get(`${lane} ${size} ${block} ${level}`);
    const row = rows?.get(answer.row);
    if (!row) return null;
    const { single, slices } = row;
    let from = lowerBoundAt(this.line.start, single, start);
    if (from && this.line.start[single[from - 1]] + this.line.dur[single[from - 1]] > start) from -= 1;
    const to = lowerBoundAt(this.line.start, single, end);
    const width = 2 ** row.level;
    const sliceFrom = lowerBound(slices.at, Math.floor(start / width));
    const sliceTo = lowerBound(slices.at, Math.ceil(end / width));
    return { row: answer.row, level: row.level, line: this.line, single, from, to, slices, sliceFrom, sliceTo };
  }

  /** Ask for what isn't here yet: twice as wide as the block, so that a little panning finds it here. */
  async wish(lanes, size, block, level) {
    const missing = lanes.filter((lane) => !this.windows.has(`${lane} ${size} ${block} ${level}`));
    if (!missing.length) return;
    const key = (lane) => `${lane} ${size} ${block} ${level}`;
    missing.forEach((lane) => this.windows.set(key(lane), null));
    try {
      const packed = await this.ask(missing, block * size, (block + 2) * size, Math.max(1, Math.round((2 * size) / 2 ** level)));
      this.take(await unpack(packed), missing, key);
    } catch (error) {
      missing.forEach((lane) => this.windows.delete(key(lane)));
      say(error.message);
      return;
    }
    this.onMore();
  }

  take(packed, lanes, key) {
    if (this.calls.length - this.first > MOST_EVENTS) this.forget(lanes, key);
    const part = new Line(packed);
    const { header } = packed;
    const names = header.names.map((name, at) => this.name(header, name, at));
    const events = this.append(part, header, names);
    for (const lane of lanes) {
      const { firstRow, rows } = this.about.lanes[lane];
      const found = new Map();
      for (let row = firstRow; row < firstRow + rows; row += 1) {
        const single = Uint32Array.from(events.subarray(part.rowEnds[row], part.rowEnds[row + 1]));
        const slices = part.slicesOf(row);
        if (slices.n) slices.longest = slices.longest.map((name) => names[name]);
        found.set(row, { level: header.lanes[lane].level, single, slices });
      }
      this.windows.set(key(lane), found);
    }
    for (const old of this.windows.keys()) {
      if (this.windows.size <= MOST_WINDOWS) break;
      if (this.windows.get(old)) this.windows.delete(old);
    }
  }

  name(header, name, at) {
    if (!this.names.has(name)) {
      this.names.set(name, this.about.names.length);
      this.about.names.push(name);
      this.about.labels.push(header.labels[at]);
      this.about.name_count.push(0);
      this.line.category = Uint16Array.from([...this.line.category, header.name_category[at]]);
    }
    return this.names.get(name);
  }

  /** The numbers of these events, new ones at the end. */
  append(part, header, names) {
    const numbers = new Uint32Array(header.places.length);
    const fresh = [];
    header.places.forEach((place, at) => {
      if (!this.numbers.has(place)) {
        this.numbers.set(place, this.calls.length);
        this.calls.push(header.calls[at]);
        this.rowsOfMore.push(part.rowOf(at));
        fresh.push(at);
      }
      numbers[at] = this.numbers.get(place);
    });
    const { line } = this;
    line.start = joined(line.start, fresh.map((at) => part.start[at]));
    line.dur = joined(line.dur, fresh.map((at) => part.dur[at]));
    line.name = joined(line.name, fresh.map((at) => names[part.name[at]]));
    this.tie();
    return numbers;
  }

  /** The number of the one event that was sent. */
  adopt(packed) {
    const { header } = packed;
    return this.append(new Line(packed), header, header.names.map((name, at) => this.name(header, name, at)))[0];
  }

  forget(lanes, key) {
    this.windows.clear();
    lanes.forEach((lane) => this.windows.set(key(lane), null));
    for (const [place, event] of this.numbers) if (event >= this.first) this.numbers.delete(place);
    this.calls.length = this.first;
    this.rowsOfMore.length = 0;
    for (const column of ["start", "dur", "name", "tie"]) this.line[column] = this.line[column].slice(0, this.first);
    this.onForget();
  }
}

// Adds up a selection, and searches, where all events are: at the server.
class ServerViewer extends Viewer {
  constructor(root, source) {
    super(root, source);
    const { search } = this;
    const { status, next, before } = this.parts;
    const highlight = search.find.bind(search);
    let asked = 0;
    search.find = async (text) => {
      highlight(text);
      asked += 1;
      const mine = asked;
      next.disabled = before.disabled = true;
      status.textContent = "";
      if (!text.trim()) return;
      const header = await source.found(text, 0, 0, 0).then((packed) => packed.header, (error) => ({ total: 0, error }));
      if (mine !== asked) return;
      next.disabled = before.disabled = !header.total;
      status.textContent = header.error?.message ?? `${header.total.toLocaleString("en")} found`;
      this.say(status.textContent);
    };
    search.step = async (by) => {
      if (next.disabled) return;
      const at = this.chosen === null ? [Math.max(0, Math.floor(this.view.start)), 0] : [source.line.start[this.chosen], source.line.rowOf(this.chosen)];
      const packed = await source.found(search.field.value, ...at, by).catch((error) => { status.textContent = error.message; });
      if (packed?.header.places.length) this.choose(source.adopt(packed), { reveal: true });
    };
  }

  select(from, to, options = {}) {
    super.select(from, to, options);
    if (options.isOpen) return;
    const start = Math.max(0, Math.floor(Math.min(from, to)));
    const end = Math.min(this.view.length, Math.ceil(Math.max(from, to)));
    const range = { start, end };
    this.range = range;
    this.parts.sums.replaceChildren(el("p", {}, "Adding up …"));
    this.source.sums(start, end).then((rows) => {
      if (this.range !== range) return;
      const lanes = this.source.about.lanes.map((lane) => ({ lane, sums: new Map() }));
      for (const [lane, category, count, ns] of rows) lanes[lane].sums.set(category, { count, ns });
      const { text, nodes } = sumTable(this.source, { ...range, lanes: lanes.filter((each) => each.sums.size), isWidened: false });
      this.parts.sums.replaceChildren(...nodes);
      this.say(`Selected. ${text}`);
    }, (error) => this.parts.sums.replaceChildren(jobs.problem(error)));
  }
}

function joined(before, more) {
  const kind = before.constructor === Float64Array || !more.length ? before.constructor : Float64Array;
  const all = new kind(before.length + more.length);
  all.set(before);
  all.set(more, before.length);
  return all;
}

export function showLine(body, run) {
  return jobs.follow(body, "line", { run: run.id }, async (job) => {
    if (!job.result.events) {
      body.replaceChildren(el("p", { class: "words" }, "Nothing in this run has a time: there is no time line."));
      return;
    }
    const holder = el("div", { class: "time-line" });
    body.replaceChildren(holder);
    try {
      const packed = await unpack(await api.packed(`api/runs/${run.id}/line`));
      const source = new ServerSource(packed, (lanes, start, end, pixels) =>
        api.packed(`api/runs/${run.id}/rows?lanes=${lanes}&start=${start}&end=${end}&pixels=${pixels}`));
      if (!holder.isConnected) return;
      source.found = async (words, at, row, by) =>
        unpack(await api.packed(`api/runs/${run.id}/found?words=${encodeURIComponent(words)}&at=${at}&row=${row}&by=${by}`));
      source.sums = (start, end) => api.ask(`api/runs/${run.id}/sums?start=${start}&end=${end}`);
      const viewer = new ServerViewer(holder, source);
      source.onMore = () => viewer.redraw();
      source.onForget = () => viewer.clear();
      holder.viewer = viewer; // for tests, and for who looks behind it
    } catch (error) {
      body.replaceChildren(jobs.problem(error));
    }
  });
}
