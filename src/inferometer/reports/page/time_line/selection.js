// Sums of a range of time: for each lane and category how many begin in it, and their time within it, to the ns.

// Where short events are merged, the range reaches to the edges of their slices: `start` and `end` are as summed up.
function sumRange(source, start, wanted) {
  const { line, about } = source;
  const end = wanted >= about.length ? about.length + 1 : wanted; // an instant at the very end is in it, too
  const coarsest = Math.max(0, ...about.lanes.map((lane) => (hasSlices(source, lane) ? lane.level : 0)));
  const size = 2 ** coarsest;
  const range = coarsest ? { start: Math.floor(start / size) * size, end: Math.ceil(end / size) * size } : { start, end };
  const lanes = about.lanes.map((lane) => ({ lane, sums: sumLane(source, line, lane, range) })).filter(({ sums }) => sums.size);
  const isWidened = range.start !== start || range.end !== end;
  const deeper = about.lanes.reduce((count, lane) => count + (lane.deeper ? lane.deeper[0] : 0), 0);
  return { start: range.start, end: Math.min(range.end, about.length), lanes, isWidened, deeper };
}

function hasSlices(source, lane) {
  return source.line.sliceEnds[lane.firstRow] < source.line.sliceEnds[lane.firstRow + lane.rows];
}

function sumLane(source, line, lane, { start, end }) {
  const sums = new Map();
  const add = (category, count, ns) => {
    const sum = sums.get(category) || { count: 0, ns: 0 };
    sum.count += count;
    sum.ns += ns;
    sums.set(category, sum);
  };
  for (let row = lane.firstRow; row < lane.firstRow + lane.rows; row += 1) {
    const [first, last] = [line.rowEnds[row], line.rowEnds[row + 1]];
    let event = lowerBound(line.start, start, first, last);
    if (event > first && line.start[event - 1] + line.dur[event - 1] > start) event -= 1;
    for (; event < last && line.start[event] < end; event += 1) {
      const ns = Math.min(end, line.start[event] + line.dur[event]) - Math.max(start, line.start[event]);
      add(line.category[line.name[event]], line.start[event] >= start ? 1 : 0, ns);
    }
    const slices = line.slicesOf(row);
    const size = 2 ** lane.level;
    for (let i = lowerBound(slices.at, start / size); i < slices.n && slices.at[i] * size < end; i += 1) {
      add(slices.category[i], slices.count[i], slices.ns[i]);
    }
  }
  return sums;
}

// The sums as a table.
function sumTable(source, { start, end, lanes, isWidened, deeper }) {
  const head = element("tr", {}, ...["Lane", "What", "Begin here", "Time"].map((text) => element("th", { scope: "col", textContent: text })));
  const body = element("tbody");
  for (const { lane, sums } of lanes) {
    const ordered = [...sums].sort((a, b) => b[1].ns - a[1].ns || a[0] - b[0]);
    ordered.forEach(([category, { count, ns }], index) => {
      const row = element("tr");
      const name = index ? "" : `${lane.group}, ${lane.name}`;
      row.append(
        element("th", { scope: "row", textContent: name }),
        element("td", { textContent: source.about.categories[category][0] }),
        element("td", { className: "n", textContent: withCommas(count) }),
        element("td", { className: "n", textContent: timeText(ns), title: exactText(ns) }),
      );
      row.lastChild.dataset.ns = ns;
      body.append(row);
    });
  }
  const widened = isWidened ? ", widened to whole slices of what is merged" : "";
  const text = `From ${timeText(start)} to ${timeText(end)}: ${timeText(end - start)} (${exactText(end - start)})${widened}`;
  const table = element("table", {}, element("thead", {}, head), body);
  const rest = `Not in these sums: ${withCommas(deeper)} events of the whole time line that are nested too deeply to be drawn.`;
  const nodes = [element("p", { textContent: text }), ...(deeper ? [element("p", { textContent: rest })] : [])];
  return { text, nodes: lanes.length ? [...nodes, table] : nodes };
}
