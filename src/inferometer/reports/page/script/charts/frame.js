// What stands around the marks of a chart: room for labels, lines of the grid, the legend's keys, a frame to zoom in by.

const labelRoom = (axis, width) => {
  const longest = axis.names.reduce((most, name) => Math.max(most, widthOf(String(name))), 0);
  return Math.min(longest + 2, width * (width < 480 ? 0.36 : 0.34));
};

function tickRoom(axis, height) {
  axis.over(height - 2 * TICK_ROOM, 8);
  return axis.ticks(34).reduce((most, { text }) => Math.max(most, widthOf(text)), 0) + 2;
}

// Numbers behind bars have their room on the axis, where it isn't given.
function leaveTextRoom(panel) {
  const texts = panel.bars.filter((bar) => bar.trace.orientation === "h").map((bar) => inside(bar.trace.text, bar.index) || "");
  const longest = texts.reduce((most, text) => Math.max(most, widthOf(String(text), 11)), 0);
  if (!longest || panel.x.options.range || panel.x.isLog) return;
  const share = Math.min(0.4, (longest + 8) / panel.x.size);
  panel.x.high = panel.x.low + (panel.x.high - panel.x.low) / (1 - share);
}

function grid({ x, y, left, right, top, bottom, label, isFirst }) {
  const layer = draw("g", { class: "axes" });
  for (const { value, text } of x.ticks(x.isCategory ? spaceOf(x) : 78)) {
    const at = x.at(value);
    if (!x.isCategory) layer.append(draw("path", { d: `M${at} ${top}V${bottom}` }));
    layer.append(draw("text", { x: at, y: bottom + 15, "text-anchor": anchor(at, text, left, right) }, text));
  }
  for (const { value, text } of y.ticks(y.isCategory ? 13 : 34)) {
    const at = y.at(value);
    if (!y.isCategory) layer.append(draw("path", { d: `M${left} ${at}H${right}` }));
    if (!isFirst) continue;
    const shown = y.isCategory ? fitting(text, label) : text;
    const line = draw("text", { x: left - 6, y: at, dy: ".35em", "text-anchor": "end" }, shown);
    if (shown !== text) line.append(draw("title", {}, text));
    layer.append(line);
  }
  const base = y.isCategory ? `M${left} ${top}V${bottom}` : `M${left} ${bottom}H${right}`;
  layer.append(draw("path", { class: "base", d: base }));
  const title = (text, place) => layer.append(draw("text", { class: "axis-title", ...place }, fitting(text, place.room)));
  if (x.options.title?.text) title(x.options.title.text, { x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle", room: right - left + 40 });
  if (y.options.title?.text && isFirst) {
    const middle = (top + bottom) / 2;
    title(y.options.title.text, { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})`, room: bottom - top });
  }
  return layer;
}

const spaceOf = (axis) => axis.names.reduce((most, name) => Math.max(most, widthOf(String(name))), 0) + 12;

function anchor(at, text, left, right) {
  const half = widthOf(text) / 2;
  return at + half > right + 12 ? "end" : at - half < left - 12 ? "start" : "middle";
}

function dragToZoom(svg, panel, choose) {
  const least = 8; // pixels: less is a click
  const frame = draw("rect", { class: "zoom", y: panel.top, height: panel.bottom - panel.top, visibility: "hidden" });
  let from = null;
  svg.append(frame);
  svg.classList.add("zooms");
  const at = (event) => Math.min(panel.right, Math.max(panel.left, event.clientX - svg.getBoundingClientRect().left));
  svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return; // a finger scrolls the page
    from = at(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const ends = [from, at(event)].sort((a, b) => a - b);
    Object.entries({ x: ends[0], width: ends[1] - ends[0], visibility: "visible" }).forEach(([name, value]) => frame.setAttribute(name, value));
  });
  svg.addEventListener("pointerup", (event) => {
    const ends = from === null ? null : [from, at(event)].sort((a, b) => a - b);
    from = null;
    frame.setAttribute("visibility", "hidden");
    if (ends && ends[1] - ends[0] >= least) choose(ends.map((pixel) => panel.x.back(pixel)));
  });
  svg.addEventListener("dblclick", () => choose(null));
}

const extremes = (z) => {
  const numbers = z.flat().filter(Number.isFinite);
  return { least: Math.min(...numbers), most: Math.max(...numbers) };
};

function key(trace) {
  const icon = draw("svg", { width: 16, height: 12, "aria-hidden": "true" });
  const color = inside(trace.marker?.color, 0) ?? trace.line?.color ?? "var(--ink)";
  if (trace.type === "bar") icon.append(draw("rect", { x: 2, y: 1, width: 11, height: 10, style: `fill:${color}` }));
  else if ((trace.mode || "lines").includes("lines")) {
    const style = `stroke:${trace.line?.color ?? color};stroke-width:2`;
    icon.append(draw("path", { d: "M0 6H16", style, "stroke-dasharray": DASHES[trace.line?.dash] }));
  }
  if (trace.type === "scatter" && (trace.mode || "").includes("markers")) {
    const { d, style, radius } = symbolPath({ ...trace, marker: { ...trace.marker, size: 9 } }, 0);
    if (radius) icon.append(draw("path", { d, style, transform: "translate(8 6)" }));
  }
  return icon;
}
