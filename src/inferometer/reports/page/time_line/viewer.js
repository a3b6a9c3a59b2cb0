// The time line as a whole: its parts in the page, what is chosen, and when it is drawn.

const GUTTER = 176;
const NARROW = 620; // CSS pixels of the whole, below which names stand above their lanes
const PAPER = 680; // CSS pixels between the margins of A4
const HELP = [
  ["W / S, Ctrl + wheel, pinch", "closer / further"], ["A / D, ← / →, drag, Shift + wheel", "earlier / later"],
  ["F", "fit what is chosen, else everything"], ["Home", "everything"], ["Shift + drag, drag the ruler, M", "select a range, or what is seen"],
  [", / .", "event before / after"], ["Enter", "from a call to its work, and back"], ["/, N / P", "search, next / previous"], ["Esc", "clear"],
];

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

class Viewer {
  constructor(root, source) {
    this.source = source;
    this.view = new View(source.about.length);
    this.layout = new Layout(source);
    this.ties = new Ties(source);
    this.answers = [];
    this.marks = source.about.marks || [];
    this.chosen = null;
    this.range = null;
    this.mark = null;
    this.found = null;
    this.paper = 0; // CSS pixels, while the page is printed
    this.build(root);
    this.painter = new Painter(this.parts.lanes);
    this.head = new Head(this.parts.head, source);
    this.search = new Search(this, this.parts);
    this.input = new Input(this);
    this.parts.body.addEventListener("scroll", () => this.redraw(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.parts.stage);
    const recolor = () => { this.palette = null; this.redraw(); };
    new MutationObserver(recolor).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
    const print = (paper) => {
      this.palette = null;
      this.paper = paper;
      this.resize();
    };
    addEventListener("beforeprint", () => print(PAPER));
    addEventListener("afterprint", () => print(0));
    this.resize();
  }

  build(root) {
    const button = (text, label, act) => {
      const made = element("button", { type: "button", textContent: text, title: label });
      made.setAttribute("aria-label", label);
      made.onclick = act;
      return made;
    };
    const field = element("input", { type: "search", placeholder: "Search names", autocomplete: "off", spellcheck: false });
    field.setAttribute("aria-label", "Search the time line");
    const next = button("↓", "Next match");
    const before = button("↑", "Previous match");
    const status = element("output");
    const tools = element("div", { className: "tl-tools" }, field, before, next, status, element("span", { className: "tl-space" }),
      button("−", "Further away", () => this.zoom(1 / 1.6)), button("+", "Closer", () => this.zoom(1.6)),
      button("Fit", "Fit what is chosen, else everything", () => this.fit()),
      button("All", "All of it", () => this.showAll()),
      button("Select", "Select what is seen", () => this.selectView()));
    const help = element("details", { className: "tl-help" }, element("summary", { textContent: "Keys" }), element("dl", {}, ...HELP.map(
      ([keys, what]) => element("div", {}, element("dt", { textContent: keys }), element("dd", { textContent: what })))));
    const head = element("canvas", { className: "tl-head" });
    const lanes = element("canvas", { className: "tl-lanes" });
    const names = element("div", { className: "tl-names" });
    const space = element("div", { className: "tl-inside" }, lanes, names);
    const body = element("div", { className: "tl-body", tabIndex: 0 }, space);
    body.setAttribute("role", "application");
    body.setAttribute("aria-label", `Time line of ${withCommas(this.source.about.lanes.length)} lanes, ${timeText(this.source.about.length)}`);
    const stage = element("div", { className: "tl-stage" }, head, body);
    const hover = element("div", { className: "tl-hover", hidden: true });
    const live = element("p", { className: "unseen" });
    live.setAttribute("role", "status");
    const about = element("div", { className: "tl-about", hidden: true });
    const sums = element("div", { className: "tl-sums", hidden: true });
    head.setAttribute("aria-hidden", "true");
    root.replaceChildren(tools, stage, hover, about, sums, legend(this.source.about), help, live);
    root.hidden = false;
    this.parts = { root, field, next, before, status, head, lanes, names, inside: space, body, stage, hover, live, about, sums };
  }

  get nsPerPixel() { return this.view.width / this.width; }

  ns(x) { return this.view.start + x * this.nsPerPixel; }

  // As wide as there is room, or as paper is.
  resize() {
    const { root, stage, body } = this.parts;
    root.style.width = this.paper ? `${this.paper}px` : "";
    const total = stage.clientWidth;
    if (!total) return;
    const isNarrow = total < NARROW;
    root.classList.toggle("tl-narrow", isNarrow);
    this.gutter = isNarrow ? 0 : GUTTER;
    this.width = Math.max(50, body.clientWidth - this.gutter);
    if (this.layout.nameLine !== (isNarrow ? NAME_LINE : 0)) {
      this.layout.nameLine = isNarrow ? NAME_LINE : 0;
      this.layout.place();
    }
    this.arrange();
    this.head.size(this.width, devicePixelRatio || 1);
    if (!this.head.whole) this.head.activity(this.view).then(() => this.redraw());
    if (this.paper) this.ask(); // a frame would come too late
    else this.redraw();
  }

  // Heights, after lanes have been folded.
  arrange() {
    const { body, inside, root } = this.parts;
    root.style.setProperty("--tl-gutter", `${this.gutter}px`);
    inside.style.height = `${this.layout.height}px`;
    const height = Math.min(this.layout.height, body.clientHeight || this.layout.height);
    this.painter.size(this.width, Math.max(20, height), devicePixelRatio || 1);
    this.named = "";
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.ask();
    });
  }

  // Asks for the rows in sight, and draws them when they come; until then what is there.
  async ask() {
    if (!this.width) return;
    const { body } = this.parts;
    const items = this.layout.within(body.scrollTop, body.scrollTop + body.clientHeight);
    const lanes = items.filter((item) => item.lane && item.lane.index !== undefined).map((item) => item.lane.index);
    const asked = {};
    this.asked = asked;
    const pixels = this.width * this.painter.ratio;
    const answers = await this.source.rows(lanes, this.view.start, this.view.end, pixels);
    if (this.asked !== asked) return;
    this.answers = answers;
    this.draw(items);
  }

  draw(items) {
    const { body, root } = this.parts;
    this.palette ||= new Palette(root, this.source.about.colors);
    const { palette, painter, view, layout } = this;
    const top = body.scrollTop;
    painter.draw({ view, layout, palette, top, found: this.found, source: this.source }, this.answers);
    for (const item of items) if (item.lane && item.lane.kind === "counter") painter.counter(item, palette);
    if (this.range) painter.range(this.range.start, this.range.end, palette);
    if (this.mark) painter.range(this.mark.start, this.mark.end, palette, true);
    if (this.chosen !== null) this.drawChosen();
    this.head.draw({ view, palette, range: this.range, marks: this.marks, mark: this.mark });
    this.nameLanes(items);
    if (!this.drawn) this.source.prepare();
    this.drawn = (this.drawn || 0) + 1;
  }

  drawChosen() {
    const { painter, layout, palette, ties } = this;
    const { line } = this.source;
    const spot = (event) => layout.spot(line.rowOf(event));
    const outline = (event) => {
      const at = spot(event);
      if (at) painter.outline(line.start[event], line.start[event] + line.dur[event], at, palette);
    };
    outline(this.chosen);
    const call = ties.callOf(this.chosen);
    const pairs = call !== null ? [[call, this.chosen]] : ties.queuedBy(this.chosen).slice(0, 50).map((event) => [this.chosen, event]);
    for (const [from, to] of pairs) {
      const [begin, end] = [spot(from), spot(to)];
      if (!begin || !end) continue;
      outline(from === this.chosen ? to : from);
      const edge = (at, other) => (at.y < other.y ? at.y + at.height : at.y);
      painter.arrow({ time: line.start[from], y: edge(begin, end) }, { time: line.start[to], y: end.y + end.height / 2 }, palette);
    }
  }

  // Names beside the lanes in sight, as buttons where they fold.
  nameLanes(items) {
    const { names } = this.parts;
    const key = items.map((item) => `${item.y}:${this.layout.isOpen(item)}`).join() + this.gutter;
    if (key === this.named) return;
    const focused = document.activeElement && document.activeElement.dataset.y;
    this.named = key;
    names.replaceChildren(...items.map((item) => {
      const text = item.lane ? item.lane.name : item.group;
      const canToggle = this.layout.canToggle(item);
      const made = element(canToggle ? "button" : "span", { className: item.lane ? "tl-lane" : "tl-group", title: item.lane ? `${item.lane.group}, ${text}` : text });
      made.append(element("span", { textContent: text }));
      made.dataset.y = item.y;
      made.style.top = `${item.y}px`;
      made.style.height = `${item.lane && this.layout.nameLine ? NAME_LINE : Math.max(15, item.height)}px`;
      if (canToggle) {
        made.type = "button";
        made.setAttribute("aria-expanded", String(this.layout.isOpen(item)));
        made.onclick = () => {
          this.layout.toggle(item);
          this.arrange();
          this.redraw();
        };
      }
      return made;
    }));
    if (focused) names.querySelector(`[data-y="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  focus() { this.parts.body.focus({ preventScroll: true }); }

  zoom(factor, x = this.width / 2) {
    this.view.zoom(factor, this.ns(x));
    this.redraw();
  }

  pan(part) {
    this.view.pan(part * this.view.width);
    this.redraw();
  }

  centre(ns) {
    this.view.pan(ns - (this.view.start + this.view.end) / 2);
    this.redraw();
  }

  showAll() {
    this.view.showAll();
    this.redraw();
  }

  fit() {
    const { line } = this.source;
    if (this.chosen !== null) this.view.showAround(line.start[this.chosen], line.start[this.chosen] + line.dur[this.chosen]);
    else if (this.range) this.view.showAround(this.range.start, this.range.end);
    else this.view.showAll();
    this.redraw();
  }

  click(x, clientY, canvas) {
    if (canvas === this.parts.head) {
      const mark = this.head.markAt(x, clientY - canvas.getBoundingClientRect().top, this.view, this.marks);
      if (mark) this.showMark(mark);
      return;
    }
    const hit = this.layout.hit(this.parts.body.scrollTop + clientY - canvas.getBoundingClientRect().top);
    const answer = hit.row !== undefined && this.answers.find((each) => each.row === hit.row);
    const event = answer ? eventAt(answer, this.ns(x), this.nsPerPixel * 2) : null;
    if (event !== null) {
      this.choose(event);
      return;
    }
    this.clear();
    const lines = describeHit(this, hit, this.ns(x));
    if (!lines) return;
    this.say(lines.join("; "));
    this.parts.about.replaceChildren(...lines.map((text) => element("p", { textContent: text })));
    this.parts.about.hidden = false;
  }

  choose(event, { reveal = false } = {}) {
    const { line, about, rowLane } = this.source;
    this.chosen = event;
    const row = line.rowOf(event);
    const lane = about.lanes[rowLane[row]];
    if (reveal) {
      const end = line.start[event] + line.dur[event];
      this.view.reveal(line.start[event], end);
      if (line.dur[event] < this.nsPerPixel) this.view.show(line.start[event] - this.view.width / 20, end + this.view.width / 20);
      this.layout.unfold(this.layout.lanes[lane.index], row);
      this.arrange();
      this.scrollTo(this.layout.spot(row));
    }
    showEvent(this, this.parts.about, event);
    this.say(describeEvent(this.source, lane, event).join("; "));
    this.redraw();
  }

  scrollTo({ y, height }) {
    const { body } = this.parts;
    if (y < body.scrollTop || y + height > body.scrollTop + body.clientHeight) {
      body.scrollTop = y - body.clientHeight / 2;
    }
  }

  // The event before or after the chosen one on its row; with none chosen, the first that is seen.
  neighbour(by) {
    const { line } = this.source;
    if (this.chosen === null) {
      const answer = this.answers.find((each) => each.to > each.from);
      if (answer) this.choose(answer.single[answer.from], { reveal: true });
      return;
    }
    const row = line.rowOf(this.chosen);
    const next = this.chosen + by;
    if (next >= line.rowEnds[row] && next < line.rowEnds[row + 1]) this.choose(next, { reveal: true });
  }

  // From work to its call, or from a call to its first work.
  follow() {
    if (this.chosen === null) return;
    const other = this.ties.callOf(this.chosen) ?? this.ties.queuedBy(this.chosen)[0];
    if (other !== undefined) this.choose(other, { reveal: true });
  }

  select(from, to, { isOpen = false } = {}) {
    const start = Math.max(0, Math.floor(Math.min(from, to)));
    const end = Math.min(this.view.length, Math.ceil(Math.max(from, to)));
    this.range = { start, end };
    if (!isOpen) {
      const sums = sumRange(this.source, start, end);
      this.range = { start: sums.start, end: sums.end };
      const { text, nodes } = sumTable(this.source, sums);
      this.parts.sums.replaceChildren(...nodes);
      this.parts.sums.hidden = false;
      this.say(`Selected. ${text}`);
    }
    this.redraw();
  }

  selectView() { this.select(this.view.start, this.view.end); }

  // Shows a mark, says what it is, and leads to where the page has more about it.
  showMark(mark) {
    this.mark = mark;
    this.view.showAround(mark.start, mark.end);
    const parts = [element("p", { textContent: mark.text })];
    const places = mark.href ? [mark.href, mark.href.replace(/_(base|candidate)$/, "")] : []; // of a run, or of both
    const href = places.find((place) => document.getElementById(place.slice(1)));
    if (href) parts.push(element("p", {}, element("a", { href, textContent: "More in its section" })));
    this.parts.about.replaceChildren(...parts);
    this.parts.about.hidden = false;
    this.say(mark.text);
    this.redraw();
  }

  clear() {
    this.chosen = null;
    this.range = null;
    this.mark = null;
    this.parts.about.hidden = true;
    this.parts.sums.hidden = true;
    this.say("");
    this.redraw();
  }

  hover(point) {
    const { hover, head, body, stage } = this.parts;
    let lines = null;
    if (point && point.canvas === head) {
      const mark = this.head.markAt(point.x, point.y - head.getBoundingClientRect().top, this.view, this.marks);
      lines = mark && [mark.text];
    } else if (point) {
      const y = body.scrollTop + point.y - point.canvas.getBoundingClientRect().top;
      lines = describeHit(this, this.layout.hit(y), this.ns(point.x));
    }
    hover.hidden = !lines;
    if (!lines) return;
    hover.replaceChildren(...lines.map((text) => element("p", { textContent: text })));
    const box = this.parts.root.getBoundingClientRect();
    const room = stage.getBoundingClientRect().right - hover.offsetWidth - 8;
    hover.style.left = `${Math.max(0, Math.min(point.clientX + 14, room) - box.left)}px`;
    hover.style.top = `${point.y + 16 - box.top}px`;
  }

  say(text) { this.parts.live.textContent = text; }
}
