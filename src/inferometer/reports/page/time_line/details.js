// What is said of an event, of a slice, of a counter: next to the pointer, below the lanes, and to a screen reader.

// Lines of text about what lies under a point; null where nothing does.
function describeHit(viewer, hit, ns) {
  const { source } = viewer;
  if (!hit.item || !hit.item.lane) return null;
  const { lane } = hit.item;
  if (lane.kind === "counter") return describeSample(viewer, lane, ns);
  if (hit.row === undefined) return lane.deeper ? [lane.name, deeperText(lane)] : null;
  const answer = viewer.answers.find((each) => each.row === hit.row);
  if (!answer) return null;
  const event = eventAt(answer, ns, viewer.nsPerPixel * 2);
  if (event !== null) return describeEvent(source, lane, event);
  return describeSlice(source, answer, ns);
}

// The event under a time, or the nearest one within `near` ns; null where there is none.
function eventAt({ line, single, from, to }, ns, near) {
  let best = null;
  let distance = near;
  for (let i = Math.max(from, from + lowerBoundAt(line.start, single.subarray(from, to), ns) - 1); i < to; i += 1) {
    const event = single[i];
    if (line.start[event] > ns + near) break;
    const end = line.start[event] + line.dur[event];
    if (line.start[event] <= ns && ns < end) return event;
    const far = Math.min(Math.abs(line.start[event] - ns), Math.abs(end - ns));
    if (far <= distance) [best, distance] = [event, far];
  }
  return best;
}

function describeEvent(source, lane, event) {
  const { line, about } = source;
  const [category] = about.categories[line.category[line.name[event]]];
  return [
    about.names[line.name[event]],
    `${timeText(line.dur[event])} (${exactText(line.dur[event])}), ${category}`,
    `from ${timeText(line.start[event])} (${exactText(line.start[event])})`,
    `${lane.group}, ${lane.name}`,
  ];
}

function describeSlice(source, { row, level, slices, sliceFrom, sliceTo }, ns) {
  const size = 2 ** level;
  const under = Math.floor(ns / size);
  const isThere = (at) => slices.at[lowerBound(slices.at, at, sliceFrom, sliceTo)] === at;
  const at = [under, under + 1, under - 1].find(isThere); // a pixel beside it is near enough
  const first = lowerBound(slices.at, at, sliceFrom, sliceTo);
  const parts = [];
  for (let i = first; i < sliceTo && slices.at[i] === at; i += 1) {
    const [category, noun] = source.about.categories[slices.category[i]];
    const begun = `${withCommas(slices.count[i])} ${slices.count[i] === 1 ? noun : plural(noun)}`;
    const longest = source.about.names[slices.longest[i]];
    parts.push(`${category}: ${begun}, ${timeText(slices.ns[i])}; the longest ${timeText(slices.longestNs[i])}: ${longest}`);
  }
  if (!parts.length) return null;
  const lane = source.about.lanes[source.rowLane[row]];
  const span = `merged: ${timeText(size)} from ${timeText(at * size)}`;
  return [span, ...parts, `${lane.group}, ${lane.name}`];
}

function describeSample(viewer, lane, ns) {
  const { time, value, unit, name } = lane.samples;
  const at = lowerBound(time, ns + 1) - 1;
  if (at < 0) return null;
  return [name, `${value[at]} ${unit}`.trim(), `at ${timeText(time[at])} (${exactText(time[at])})`];
}

const plural = (noun) => (noun === "copy" ? "copies" : `${noun}s`);
const deeperText = (lane) => {
  const [count, ns] = lane.deeper;
  return `${withCommas(count)} more, nested deeper or at once with more than ${lane.rows} others, are not drawn: ${timeText(ns)}`;
};

// The sorts of events and their colours: device work first, each by its time.
function legend({ categories, colors }) {
  const isDevice = ([, noun]) => ["kernel", "copy", "graph"].includes(noun);
  const order = categories.map((_, index) => index).filter((index) => categories[index][2] > 0);
  order.sort((a, b) => isDevice(categories[b]) - isDevice(categories[a]) || categories[b][2] - categories[a][2]);
  return element("ul", { className: "tl-legend" }, ...order.map((index) => {
    const [name, pale] = colors[index];
    const item = element("li", { textContent: categories[index][0] });
    item.style.setProperty("--shade", `color-mix(in srgb, var(${name}), var(--paper) ${pale * 100}%)`);
    return item;
  }));
}

// What an event hangs together with: the call that queued it or the work that it queued, and what stood around the call.
class Ties {
  constructor(source) {
    this.source = source;
    this.queued = null;
  }

  callOf(event) {
    const call = this.source.line.tie[event];
    return call >= 0 ? call : null;
  }

  // The first few events that a call queued, and how many there are.
  queuedBy(call) {
    if (!this.queued) {
      this.queued = new Map();
      this.source.line.tie.forEach((each, event) => {
        if (each < 0) return;
        const known = this.queued.get(each);
        if (known) known.push(event);
        else this.queued.set(each, [event]);
      });
    }
    return this.queued.get(call) || [];
  }

  // The innermost event of each host lane of a thread that was open when this one began.
  around(event) {
    const { line, about, rowLane } = this.source;
    const own = about.lanes[rowLane[line.rowOf(event)]];
    const found = [];
    for (const lane of about.lanes) {
      if (lane.group !== own.group || lane === own || !["op", "frame", "range"].includes(lane.kind)) continue;
      for (let row = lane.firstRow + lane.rows - 1; row >= lane.firstRow; row -= 1) {
        const [first, last] = [line.rowEnds[row], line.rowEnds[row + 1]];
        const at = lowerBound(line.start, line.start[event] + 1, first, last) - 1;
        if (at >= first && line.start[at] + line.dur[at] > line.start[event]) {
          found.push(at);
          break;
        }
      }
    }
    return found;
  }
}

// The box below the lanes about the chosen event, with buttons that lead to what it hangs together with.
function showEvent(viewer, box, event) {
  const { source, ties } = viewer;
  const lane = source.about.lanes[source.rowLane[source.line.rowOf(event)]];
  const [name, ...lines] = describeEvent(source, lane, event);
  const links = [];
  const link = (words, other) => {
    const { line, about } = source;
    const button = element("button", { type: "button", textContent: `${words} ${about.labels[line.name[other]] || about.names[line.name[other]]}` });
    button.onclick = () => viewer.choose(other, { reveal: true });
    links.push(button);
  };
  const call = ties.callOf(event);
  if (call !== null) {
    const delay = source.line.start[event] - source.line.start[call];
    link(`queued ${timeText(delay)} before by`, call);
    ties.around(call).forEach((each) => link("in", each));
  } else if (lane.kind === "call") {
    const queued = ties.queuedBy(event);
    queued.slice(0, 5).forEach((each) => link("queued", each));
    if (queued.length > 5) links.push(element("span", { textContent: `and ${withCommas(queued.length - 5)} more` }));
    ties.around(event).forEach((each) => link("in", each));
  }
  const text = element("code", { textContent: name });
  box.replaceChildren(text, element("p", { textContent: lines.join("; ") }), element("p", { className: "tl-links" }, ...links));
  box.hidden = false;
}
