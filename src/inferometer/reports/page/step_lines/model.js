// Steps of two runs: their boxes, which of them correspond, and on which lanes they lie.

const SERIES = 8;
const LANES = 12; // of one run: the streams with the most work, and one for all others
const LANE = 22;
const HEAD = 26;
const BETWEEN = 36;
const AXIS = 22;
const TIED = 60; // lines between launches that are always drawn: those of the longest in view
const SHORTEST = 50; // ns that the axis shows at most closely

const duration = (ns) => formatted("ns", ns);
const signed = (ns) => (ns > 0 ? `+${duration(ns)}` : duration(ns));

// The model: a step's boxes, and which boxes of two steps correspond.

function boxesOf(step) {
  const ends = new Map();
  const boxes = [];
  for (let at = 0; at < step.boxes.length; at += 4) {
    const [stream, gap, dur, kernel] = step.boxes.slice(at, at + 4);
    const start = (ends.get(stream) ?? 0) + gap;
    const [launches, summed] = step.merged[boxes.length] ?? [1, dur];
    boxes.push({ row: boxes.length, stream, start, dur, kernel, launches, summed, tie: null });
    ends.set(stream, start + dur);
  }
  return boxes;
}

function byGroup(side, boxes) {
  const groups = new Map();
  for (const box of [...boxes].sort((a, b) => a.start - b.start || a.row - b.row)) {
    const group = box.kernel < 0 ? -1 : side.kernels[box.kernel][3];
    if (group < 0) continue;
    if (!groups.has(group)) groups.set(group, new Map());
    const kernels = groups.get(group);
    if (!kernels.has(box.kernel)) kernels.set(box.kernel, []);
    kernels.get(box.kernel).push(box);
  }
  return groups;
}

function tie(sides, boxes) {
  const [left, right] = sides.map((side, n) => byGroup(side, boxes[n]));
  let ties = 0;
  for (const [group, kernels] of left) {
    const lists = [...kernels.values(), ...(right.get(group)?.values() ?? [])];
    if (!right.has(group) || new Set(lists.map((list) => list.length)).size > 1) continue;
    const others = [...right.get(group).values()][0];
    [...kernels.values()][0].forEach((box, k) => {
      box.tie = others[k];
      others[k].tie = box;
      ties += 1;
    });
  }
  return ties;
}

// Streams of one name stand in the same order in both steps: those with the most work in either first.
function workByStream(steps, boxes) {
  const work = new Map();
  steps.forEach((step, n) => boxes[n].forEach((box) => {
    const name = step.streams[box.stream];
    work.set(name, (work.get(name) ?? 0) + box.summed);
  }));
  return work;
}

function lanesOf(step, boxes, work) {
  const sums = step.streams.map((name, stream) => ({ stream, ns: work.get(name) }));
  sums.sort((a, b) => b.ns - a.ns || a.stream - b.stream);
  const own = sums.length > LANES ? sums.slice(0, LANES - 1) : sums;
  const lanes = own.map(({ stream }) => ({ name: `stream ${step.streams[stream]}`, streams: new Set([stream]) }));
  const rest = sums.slice(own.length).map(({ stream }) => stream);
  if (rest.length) lanes.push({ name: `${rest.length} more`, streams: new Set(rest) });
  return lanes.map((lane) => ({ ...lane, boxes: boxes.filter((box) => lane.streams.has(box.stream)) }));
}
