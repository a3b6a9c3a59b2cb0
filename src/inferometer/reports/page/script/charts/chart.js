// A chart: its axes, marks, legend and menu, drawn as SVG in the variables of the style, as wide as its place is.

const GAP = 10;
const TICK_ROOM = 20;
const TITLE_ROOM = 20;
const LINE = 34; // pixels of a category, at most
const AROUND = 52;

class Chart {
  constructor(plot) {
    this.plot = plot;
    this.figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
    this.layout = this.figure.layout;
    this.most = parseFloat(plot.style.getPropertyValue("--height"));
    this.off = new Set();
    this.zoom = null;
    this.holder = make("div", { className: "canvas" });
    plot.replaceChildren(this.holder);
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-roledescription", "chart");
    plot.addEventListener("keydown", (event) => this.press(event));
    plot.addEventListener("blur", () => this.hover?.hide());
    this.head = make("div", { className: "chart-head" });
    plot.before(this.head);
    (this.layout.updatemenus || []).forEach((menu) => this.menu(menu));
    this.legend();
    this.whole = make("button", { type: "button", className: "whole", textContent: "Whole range", hidden: true });
    this.whole.onclick = () => this.zoomTo(null);
    this.head.append(this.whole);
    new ResizeObserver(() => this.fit()).observe(plot);
    this.fit();
  }

  get traces() {
    return this.figure.data.filter((trace, index) => DRAWN.has(trace.type) && trace.visible !== false && !this.off.has(index));
  }

  menu(menu) {
    const select = make("select");
    select.append(...menu.buttons.map((button) => make("option", { textContent: button.label })));
    select.setAttribute("aria-label", `What the chart shows: ${this.plot.dataset.title}`);
    select.onchange = () => {
      const [changes, only] = menu.buttons[select.selectedIndex].args;
      const chosen = only || this.figure.data.map((trace, index) => index);
      for (const [name, values] of Object.entries(changes)) {
        chosen.forEach((index, n) => { this.figure.data[index][name] = values[n % values.length]; });
      }
      this.zoomTo(null);
    };
    this.head.append(make("label", { className: "choose" }, make("span", { textContent: "Show" }), select));
  }

  legend() {
    const named = this.figure.data.map((trace, index) => ({ trace, index })).filter(({ trace }) =>
      trace.name && trace.showlegend !== false && DRAWN.has(trace.type) && trace.visible !== false);
    const heat = this.figure.data.find((trace) => trace.type === "heatmap");
    if (heat) this.head.append(this.scale(heat));
    if (named.length < 2 && !this.layout.showlegend) return;
    const items = named.map(({ trace, index }) => {
      const item = make("button", { type: "button" }, key(trace), trace.name);
      item.setAttribute("aria-pressed", "true");
      item.onclick = () => {
        if (!this.off.delete(index)) this.off.add(index);
        item.setAttribute("aria-pressed", String(!this.off.has(index)));
        this.redraw();
      };
      return item;
    });
    const list = make("div", { className: "legend", role: "group" }, ...items);
    list.setAttribute("aria-label", `Series of ${this.plot.dataset.title}`);
    this.head.append(list);
  }

  scale(heat) {
    const bar = heat.colorbar || {};
    const { least, most } = { least: heat.zmin, most: heat.zmax, ...(heat.zmax === undefined && extremes(heat.z)) };
    const [low, high] = [least, most].map((value) => (bar.tickformat ? tickText(value, 0.01, bar.tickformat) : inFormat(value)));
    return make("div", { className: "heat-scale" }, low, make("i"), `${high} ${bar.title?.text || ""}`);
  }

  fit() {
    if (!root.classList.contains("printing") && this.plot.clientWidth !== this.width) this.redraw();
  }

  redraw(width = this.plot.clientWidth) {
    if (!width) return; // its tab or fold is closed: drawn when it opens
    this.width = width;
    const panels = this.panels(width);
    const svg = draw("svg", { width, height: this.height, viewBox: `0 0 ${width} ${this.height}`, "aria-hidden": "true" });
    const spots = panels.flatMap((panel) => {
      svg.append(grid(panel));
      return this.marks(svg, panel);
    });
    this.hover?.tip.remove();
    this.holder.replaceChildren(svg);
    this.hover = new Hover(this.plot, svg, spots);
    if (this.canZoom(panels)) dragToZoom(svg, panels[0], (range) => this.zoomTo(range));
  }

  canZoom(panels) {
    return panels.length === 1 && !panels[0].x.isCategory && !this.traces.some((trace) => trace.orientation === "h");
  }

  zoomTo(range) {
    this.zoom = range;
    this.whole.hidden = !range;
    this.redraw();
  }

  press(event) {
    if (event.target !== this.plot) return;
    if (event.key === "Escape") this.hover.hide();
    else if (event.ctrlKey || event.metaKey || event.altKey || !this.hover?.press(event.key)) return;
    event.preventDefault();
  }

  // One for each horizontal axis: those of two runs stand side by side.
  panels(width) {
    const names = [...new Set(this.traces.map((trace) => trace.xaxis || "x"))];
    const ids = names.length ? names : ["x"];
    const made = ids.map((id) => this.axes(id));
    this.height = Math.min(this.most, made[0].y.isCategory ? AROUND + LINE * made[0].y.names.length : Infinity);
    const titled = Boolean(this.layout.yaxis?.title?.text);
    const left = made[0].y.isCategory ? labelRoom(made[0].y, width) : tickRoom(made[0].y, this.height);
    const [begin, end] = [left + GAP + (titled ? TITLE_ROOM : 0), width - 14];
    return made.map(({ x, y, bars, traces }, n) => {
      const [from, to] = x.options.domain || [0, 1];
      const panel = { x, y, bars, traces, top: 8, label: left, isFirst: n === 0 };
      panel.left = begin + from * (end - begin);
      panel.right = begin + to * (end - begin);
      panel.bottom = this.height - TICK_ROOM - (x.options.title?.text ? TITLE_ROOM : 0);
      x.over(panel.left, panel.right);
      y.over(panel.bottom, panel.top);
      leaveTextRoom(panel);
      return panel;
    });
  }

  axes(id) {
    const traces = this.traces.filter((trace) => (trace.xaxis || "x") === id);
    const bars = barsOf(traces.filter((trace) => ["bar", "waterfall"].includes(trace.type)), this.layout);
    const isAcross = bars.some((bar) => bar.trace.orientation === "h");
    const values = { x: [], y: [] };
    for (const trace of traces) valuesOf(trace, values);
    const places = bars.map((bar) => bar.place);
    const band = bandOf(places);
    for (const { trace, place, from, to } of bars) {
      trace.band = Number.isFinite(band) ? band : 1;
      const half = typeof place === "number" ? [place - trace.band / 2, place + trace.band / 2] : [place];
      values[isAcross ? "x" : "y"].push(from, to);
      values[isAcross ? "y" : "x"].push(...half);
    }
    const isFilled = traces.some((trace) => trace.fill === "tozeroy");
    const isTight = bars.length || traces.some((trace) => trace.type === "heatmap");
    const name = id === "x" ? "xaxis" : `xaxis${id.slice(1)}`;
    const options = { ...(this.layout[name] || {}), ...(this.zoom && { range: this.zoom }) };
    return {
      x: new Axis(options, values.x, { solid: isAcross, room: isTight && !isAcross ? 0 : 0.03, whole: traces.every(hasWholePlaces) }),
      y: new Axis(this.layout.yaxis || {}, values.y, { solid: (bars.length && !isAcross) || isFilled, room: isAcross ? 0 : 0.05 }),
      bars,
      traces,
    };
  }

  marks(svg, panel) {
    const id = `${this.plot.dataset.figure}-clip-${Math.round(panel.left)}`;
    const size = { x: panel.left, y: panel.top - 6, width: panel.right - panel.left + 8, height: panel.bottom - panel.top + 6 };
    const layer = draw("g", { "clip-path": `url(#${id})` });
    svg.append(draw("clipPath", { id }, draw("rect", size)), layer);
    const spots = [];
    const put = (made) => {
      layer.append(made.layer);
      spots.push(...made.spots);
      return made;
    };
    if (panel.bars.length) put(drawBars(panel.bars, panel, this.layout));
    let below = null;
    for (const trace of panel.traces) {
      if (trace.type === "scatter") below = put(drawScatter(trace, panel, below)).points;
      else if (trace.type === "box") put(drawBoxes(trace, panel));
      else if (trace.type === "heatmap") put(drawCells(trace, panel));
    }
    for (const { x0, line } of this.layout.shapes || []) {
      const x = panel.x.at(x0);
      const dash = DASHES[line.dash];
      layer.append(draw("path", { d: `M${x} ${panel.top}V${panel.bottom}`, style: `stroke:${line.color};stroke-width:${line.width}`, "stroke-dasharray": dash }));
    }
    return spots.filter(({ x }) => x >= panel.left - 1 && x <= panel.right + 8);
  }
}

function hasWholePlaces(trace) {
  return trace.orientation !== "h" && trace.type !== "box" && trace.x?.every((value) => value === null || Number.isInteger(value));
}

function valuesOf(trace, values) {
  if (trace.type === "scatter") {
    values.x.push(...(trace.x || []));
    values.y.push(...(trace.y || []));
    const error = trace.error_x;
    (error?.array || []).forEach((more, n) => values.x.push(trace.x[n] + (more || 0), trace.x[n] - (error.arrayminus?.[n] ?? more ?? 0)));
  } else if (trace.type === "box") {
    values.y.push(...trace.y);
    values.x.push(...trace.lowerfence, ...trace.upperfence);
  } else if (trace.type === "heatmap") {
    values.y.push(...trace.y);
    if (trace.x) values.x.push(...trace.x);
    else values.x.push(trace.x0 - trace.dx / 2, trace.x0 + (trace.z[0].length - 0.5) * trace.dx);
  }
}
