// Sums of a range of time: for each lane and category how many begin in it, and their time within it, to the ns.

// Where short events are merged, the range reaches to the edges of their slices: `start` and `end` are as summed up.
function sumRange(source, start, end) {
  const { line, about } = source;
  const coarsest = Math.max(0, ...about.lanes.map((lane) => (hasSlices(source, lane) ? lane.level : 0)));
  const size = 2 ** coarsest;
  const range = coarsest ? { start: Math.floor(start / size) * size, end: Math.ceil(end / size) * size } : { start, end };
  const lanes = about.lanes.map((lane) => ({ lane, sums: sumLane(source, line, lane, range) })).filter(({ sums }) => sums.size);
  return { ...range, lanes, isWidened: range.start !== start || range.end !== end };
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
function sumTable(source, { start, end, lanes, isWidened }, offset) {
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
  const text = `From ${timeText(start + offset)} to ${timeText(end + offset)}: ${timeText(end - start)} (${exactText(end - start)})${widened}`;
  const table = element("table", {}, element("thead", {}, head), body);
  return { text, nodes: [element("p", { textContent: text }), ...(lanes.length ? [table] : [])] };
}
