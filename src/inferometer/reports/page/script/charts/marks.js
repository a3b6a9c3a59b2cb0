// Marks of charts: lines, dots, bars, boxes and cells, each with the spots at which it says its numbers.

const DASHES = { dash: "6 4", dot: "2 3", dashdot: "6 3 2 3", longdash: "10 4" };
const DRAWN = new Set(["scatter", "bar", "waterfall", "box", "heatmap"]);
const HEAT_LEVELS = 20;

const SYMBOLS = {
  circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  square: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  diamond: (r) => `M0 ${-1.25 * r}l${1.1 * r} ${1.25 * r}l${-1.1 * r} ${1.25 * r}l${-1.1 * r} ${-1.25 * r}z`,
  "x-thin": (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`,
};

function symbolPath(trace, index) {
  const symbol = inside(trace.marker?.symbol, index) || "circle";
  const isOpen = symbol.endsWith("-open");
  const radius = (inside(trace.marker?.size, index) ?? 6) / 2;
  const color = inside(trace.marker?.color, index) ?? trace.line?.color ?? "var(--ink)";
  const shape = SYMBOLS[symbol.replace(/-open$/, "")] || SYMBOLS.circle;
  const style = isOpen ? `fill:none;stroke:${color};stroke-width:${trace.marker?.line?.width ?? 1.5}` : `fill:${color}`;
  return { d: shape(radius), style, radius };
}

const along = (trace) => (trace.orientation === "h" ? { place: "y", length: "x" } : { place: "x", length: "y" });

// Bars with where they begin and end: stood on each other, side by side, or, of a waterfall, on the level before.
function barsOf(traces, layout) {
  const stacks = new Map();
  const groups = traces.filter((trace) => trace.type === "bar");
  return traces.flatMap((trace) => {
    const { place, length } = along(trace);
    let level = 0;
    return (trace[length] || []).map((value, index) => {
      const key = `${trace.xaxis || "x"} ${value < 0} ${trace[place][index]}`;
      let from = 0;
      if (trace.type === "waterfall") {
        const isRelative = trace.measure[index] === "relative";
        from = isRelative ? level : 0;
        level = isRelative ? level + value : value;
        return { trace, index, place: trace[place][index], from, to: level, share: 1, offset: 0, isRelative };
      }
      if (layout.barmode === "stack") {
        from = stacks.get(key) || 0;
        stacks.set(key, from + (value || 0));
      }
      const beside = layout.barmode === "stack" ? [trace] : groups.filter((each) => hasBarAt(each, trace, trace[place][index]));
      const share = 1 / Math.max(1, beside.length);
      const offset = (beside.indexOf(trace) + 0.5) * share - 0.5;
      return { trace, index, place: trace[place][index], from, to: from + (value || 0), share, offset };
    });
  });
}

function hasBarAt(trace, like, at) {
  const { place, length } = along(trace);
  return (trace.xaxis || "x") === (like.xaxis || "x") && trace[place].some((each, n) => each === at && trace[length][n] !== null);
}

function bandOf(places) {
  const sorted = [...new Set(places.filter(Number.isFinite))].sort((a, b) => a - b);
  return sorted.slice(1).reduce((least, value, n) => Math.min(least, value - sorted[n]), Infinity);
}

function barColor(bar) {
  const { trace, index } = bar;
  if (trace.type !== "waterfall") return inside(trace.marker?.color, index) ?? "var(--series-1)";
  if (!bar.isRelative) return trace.totals.marker.color;
  return (bar.to >= bar.from ? trace.increasing : trace.decreasing).marker.color;
}

function drawBars(bars, panel, layout) {
  const layer = draw("g");
  const spots = [];
  const gap = layout.bargap ?? 0.2;
  for (const bar of bars) {
    const isAcross = bar.trace.orientation === "h";
    const [axis, other] = isAcross ? [panel.y, panel.x] : [panel.x, panel.y];
    const band = axis.isCategory ? 1 : Math.min(bar.trace.band ?? 1, axis.high - axis.low);
    const middle = axis.at(bar.place, bar.offset * band * (1 - gap));
    const thick = Math.max(1, (axis.size / (axis.high - axis.low)) * band * (1 - gap) * bar.share);
    const [a, b] = [other.at(bar.from), other.at(bar.to)].sort((one, two) => one - two);
    const [x, y, width, height] = isAcross ? [a, middle - thick / 2, b - a, thick] : [middle - thick / 2, a, thick, b - a];
    const value = bar.trace[isAcross ? "x" : "y"][bar.index];
    if (value === null || value === undefined || ![x, y, width, height].every(Number.isFinite)) continue;
    layer.append(draw("rect", { class: "mark", x, y, width, height, style: `fill:${barColor(bar)}` }));
    const text = inside(bar.trace.text, bar.index);
    if (isAcross && text) layer.append(barText(String(text), b, a, y + height / 2, panel));
    spots.push({
      x: isAcross ? b : x + width / 2,
      y: isAcross ? y + height / 2 : a,
      box: [x, y, width, height],
      get said() { return saidOf(bar.trace, bar.index, isAcross ? { x: value, y: bar.place } : { x: bar.place, y: value }); },
    });
  }
  return { layer, spots };
}

function barText(text, end, begin, y, panel) {
  const fits = end + 5 + widthOf(text, 11) <= panel.right + 2;
  const place = fits ? { x: end + 5 } : { x: begin - 5, "text-anchor": "end" };
  return draw("text", { ...place, y, dy: ".35em", class: "bar-text" }, text);
}

function linePath(points, isStep) {
  let path = "";
  let before = null;
  for (const point of points) {
    if (!point) before = null;
    else {
      path += before === null ? `M${point[0]} ${point[1]}` : isStep ? `H${point[0]}V${point[1]}` : `L${point[0]} ${point[1]}`;
      before = point;
    }
  }
  return path;
}

function drawScatter(trace, panel, below) {
  const layer = draw("g");
  const points = (trace.x || []).map((x, index) => {
    const at = [panel.x.at(x), panel.y.at(trace.y[index])];
    return x === null || trace.y[index] === null || !at.every(Number.isFinite) ? null : at.map((n) => Number(n.toFixed(1)));
  });
  const mode = trace.mode || "lines";
  if (trace.fill === "tozeroy" && points.some(Boolean)) {
    const shown = points.filter(Boolean);
    const zero = panel.y.at(panel.y.isLog ? 10 ** panel.y.low : 0);
    const area = `${linePath(points, trace.line?.shape === "hv")}V${zero}H${shown[0][0]}Z`;
    layer.append(draw("path", { d: area, style: `fill:${trace.line?.color};fill-opacity:.25` }));
  } else if (trace.fill === "tonexty" && below) {
    const edge = [...points.filter(Boolean), ...below.filter(Boolean).reverse()];
    layer.append(draw("path", { d: `${linePath(edge)}Z`, style: `fill:${trace.fillcolor ?? trace.line?.color}` }));
  }
  if (mode.includes("lines") && trace.line?.width !== 0) {
    const style = `fill:none;stroke:${trace.line?.color ?? "var(--ink)"};stroke-width:${trace.line?.width ?? 2}`;
    const dash = DASHES[trace.line?.dash];
    layer.append(draw("path", { d: linePath(points, trace.line?.shape === "hv"), style, "stroke-dasharray": dash }));
  }
  points.forEach((point, index) => { if (point) layer.append(...errorBar(trace, index, point, panel)); });
  if (mode.includes("markers")) {
    const chosen = trace.selectedpoints ? new Set(trace.selectedpoints) : null;
    points.forEach((point, index) => {
      if (!point) return;
      const { d, style } = symbolPath(trace, index);
      const isFaint = chosen && !chosen.has(index);
      const opacity = isFaint ? trace.unselected?.marker?.opacity ?? 0.1 : trace.marker?.opacity;
      layer.append(draw("path", { class: "mark", d, style, opacity, transform: `translate(${point[0]} ${point[1]})` }));
    });
  }
  const spots = trace.hoverinfo === "skip" ? [] : points.flatMap((point, index) => point
    ? [{ x: point[0], y: point[1], get said() { return saidOf(trace, index, { x: trace.x[index], y: trace.y[index] }); } }] : []);
  return { layer, spots, points };
}

function errorBar(trace, index, [x, y], panel) {
  const error = trace.error_x;
  const value = trace.x[index];
  const more = error?.array?.[index];
  if (more === undefined || more === null) return [];
  const less = error.arrayminus?.[index] ?? more;
  const [a, b] = [panel.x.at(value - less), panel.x.at(value + more)];
  const d = `M${a} ${y}H${b}M${a} ${y - 4}v8M${b} ${y - 4}v8`;
  return [draw("path", { d, style: `fill:none;stroke:${error.color ?? "var(--muted)"};stroke-width:1.5` })];
}

function drawBoxes(trace, panel) {
  const layer = draw("g");
  const spots = trace.y.map((name, index) => {
    const parts = ["lowerfence", "q1", "median", "q3", "upperfence"];
    const [low, q1, median, q3, high] = parts.map((part) => panel.x.at(trace[part][index]));
    const y = panel.y.at(name);
    const half = Math.min(9, (panel.y.size / panel.y.names.length) * 0.32);
    const color = trace.marker?.color ?? "var(--series-1)";
    layer.append(
      draw("path", { d: `M${low} ${y}H${q1}M${q3} ${y}H${high}M${low} ${y - 4}v8M${high} ${y - 4}v8`, style: `stroke:${color};stroke-width:1.5` }),
      draw("rect", { class: "mark", x: q1, y: y - half, width: Math.max(1, q3 - q1), height: 2 * half, style: `fill:${color};fill-opacity:.35;stroke:${color}` }),
      draw("path", { d: `M${median} ${y - half}v${2 * half}`, style: `stroke:${color};stroke-width:3` }),
    );
    const unit = (panel.x.options.title?.text || "").split(", ").at(-1);
    const words = ["1st percentile", "quartile", "median", "quartile", "99th percentile"];
    const said = parts.map((part, n) => `${words[n]} ${inFormat(trace[part][index])} ${unit}`);
    return { x: median, y, box: [low, y - half, high - low, 2 * half], said: [name, ...said].join("\n") };
  });
  return { layer, spots };
}

function drawCells(trace, panel) {
  const numbers = trace.z.flat().filter(Number.isFinite);
  const least = trace.zmin ?? numbers.reduce((a, b) => Math.min(a, b), Infinity);
  const most = trace.zmax ?? numbers.reduce((a, b) => Math.max(a, b), -Infinity);
  const levels = Array.from({ length: HEAT_LEVELS + 1 }, () => "");
  const edge = (column, side) => trace.x ? panel.x.at(trace.x[column], side / 2) : panel.x.at(trace.x0 + (column + side / 2) * trace.dx);
  const cells = [];
  trace.z.forEach((row, line) => {
    const [top, bottom] = [panel.y.at(trace.y[line], -0.46), panel.y.at(trace.y[line], 0.46)].sort((a, b) => a - b);
    row.forEach((value, column) => {
      if (value === null) return;
      const [x, end] = [edge(column, -1), edge(column, 1)];
      const level = Math.round(((value - least) / (most - least || 1)) * HEAT_LEVELS);
      levels[level] += `M${x.toFixed(1)} ${top.toFixed(1)}H${(end + 0.2).toFixed(1)}V${bottom.toFixed(1)}H${x.toFixed(1)}z`;
      cells.push({ line, column, value, box: [x, top, end - x, bottom - top] });
    });
  });
  const layer = draw("g", {}, ...levels.flatMap((d, level) => (d
    ? [draw("path", { d, style: level ? `fill:var(--series-1);fill-opacity:${level / HEAT_LEVELS}` : "fill:var(--surface)" })] : [])));
  const spots = cells.map(({ line, column, value, box }) => ({
    x: box[0] + box[2] / 2,
    y: box[1] + box[3] / 2,
    box,
    get said() {
      return saidOf(trace, column, { x: trace.x ? trace.x[column] : trace.x0 + column * trace.dx, y: trace.y[line], z: value });
    },
  }));
  return { layer, spots, least, most };
}
