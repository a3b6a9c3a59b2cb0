// Which lanes there are to see, and where: groups that fold, lanes of few or of all their rows, counters below.

const HEIGHTS = { group: 26, stream: 20, step: 18, counter: 40, other: 15 };
const ROW_GAP = 1;
const LANE_GAP = 5;
const FEW = 3; // rows of a lane that isn't unfolded
const NAME_LINE = 14; // above a lane, where there is no room beside it

class Layout {
  constructor(source) {
    const { lanes } = source.about;
    this.lanes = [...lanes, ...source.line.samples.map((samples) => ({ ...samples, kind: "counter", rows: 1, samples }))];
    this.closed = new Set();
    this.open = new Set(this.lanes.filter((lane) => lane.rows <= FEW || lane.kind === "stream"));
    this.nameLine = 0;
    this.place();
  }

  heightOf(lane) { return HEIGHTS[lane.kind] || HEIGHTS.other; }

  rowsOf(lane) { return this.open.has(lane) ? lane.rows : Math.min(lane.rows, FEW); }

  place() {
    this.items = [];
    let y = 0;
    let group = null;
    for (const lane of this.lanes) {
      if (lane.group !== group) {
        group = lane.group;
        this.items.push({ group, y, height: HEIGHTS.group });
        y += HEIGHTS.group;
      }
      if (this.closed.has(group)) continue;
      const top = y + this.nameLine;
      const height = this.rowsOf(lane) * (this.heightOf(lane) + ROW_GAP);
      this.items.push({ lane, y, top, height: this.nameLine + height });
      y += this.nameLine + height + LANE_GAP;
    }
    this.height = y;
    this.byRow = null;
  }

  toggle(item) {
    const [set, key] = item.lane ? [this.open, item.lane] : [this.closed, item.group];
    if (!set.delete(key)) set.add(key);
    this.place();
  }

  isOpen(item) { return item.lane ? this.open.has(item.lane) : !this.closed.has(item.group); }

  canToggle(item) { return !item.lane || item.lane.rows > FEW; }

  // The items between two heights.
  within(top, bottom) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.items[middle].y + this.items[middle].height < top) low = middle + 1;
      else high = middle;
    }
    const found = [];
    for (let i = low; i < this.items.length && this.items[i].y < bottom; i += 1) found.push(this.items[i]);
    return found;
  }

  // Where a row is drawn: `y` and `height`; null where it is folded away.
  spot(row) {
    if (!this.byRow) {
      this.byRow = new Map();
      for (const item of this.items) {
        if (!item.lane || item.lane.kind === "counter") continue;
        const height = this.heightOf(item.lane);
        for (let own = 0; own < this.rowsOf(item.lane); own += 1) {
          this.byRow.set(item.lane.firstRow + own, { y: item.top + own * (height + ROW_GAP), height });
        }
      }
    }
    return this.byRow.get(row) || null;
  }

  // Opens what hides a row.
  unfold(lane, row) {
    this.closed.delete(lane.group);
    if (row - lane.firstRow >= this.rowsOf(lane)) this.open.add(lane);
    this.place();
  }

  // The item at a height, and the row of it.
  hit(y) {
    const item = this.within(y, y + 1)[0];
    if (!item || y < item.y || !item.lane || y < item.top) return { item };
    const own = Math.floor((y - item.top) / (this.heightOf(item.lane) + ROW_GAP));
    return own < this.rowsOf(item.lane) ? { item, row: item.lane.firstRow + own } : { item };
  }
}
