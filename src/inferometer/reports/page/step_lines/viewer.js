// What the reader does with it: choosing steps, zooming, going from launch to launch.

class StepLines extends Drawing {
  constructor(holder) {
    super();
    this.holder = holder;
    this.data = JSON.parse(document.getElementById(holder.dataset.figure).textContent);
    this.chosen = this.data.sides.map((side) => side.median);
    this.selected = null;
    this.canvas = make("canvas", { className: "lines", tabIndex: 0 });
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "time lines");
    this.canvas.setAttribute("aria-label", `${holder.dataset.title}. Arrow keys go from launch to launch, up and down `
      + "to the one that corresponds; plus, minus and 0 zoom.");
    this.said = make("output", { className: "said" });
    this.tip = make("div", { className: "tip", hidden: true });
    this.tip.setAttribute("aria-hidden", "true");
    holder.append(this.tools(), this.canvas, this.tip, this.said, this.key());
    this.listen();
    this.choose();
  }

  tools() {
    this.selects = this.data.sides.map((side, n) => {
      const select = make("select");
      select.setAttribute("aria-label", `Step of the ${side.head.toLowerCase()}`);
      const named = (place) => ["median", "slowest", "fastest"].filter((kind) => side[kind] === place).join(", ");
      select.append(...side.steps.map((step, place) => make("option", {
        textContent: `${step.name}: ${duration(step.dur)}${named(place) && ` (${named(place)})`}`,
      })));
      select.onchange = () => {
        this.chosen[n] = select.selectedIndex;
        this.choose();
      };
      return make("label", { className: "choose" }, make("span", { textContent: `${side.head}, step` }), select);
    });
    const button = (text, label, press) => {
      const made = make("button", { type: "button", textContent: text, onclick: press });
      if (label) made.setAttribute("aria-label", label);
      return made;
    };
    const both = (kind) => button(`Both ${kind}`, "", () => {
      this.chosen = this.data.sides.map((side) => side[kind]);
      this.choose();
    });
    const several = this.data.sides.some((side) => side.steps.length > 1);
    const choices = several ? [...["median", "slowest", "fastest"].map(both), ...this.selects] : [];
    return make("div", { className: "tools" }, ...choices,
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("−", "Zoom out", () => this.zoom(2)),
      button("Whole", "Show whole steps", () => this.whole()));
  }

  key() {
    const shown = this.data.families.slice(0, SERIES - 1).map((family, place) => {
      const swatch = make("i");
      swatch.style.background = `var(--series-${place + 1})`;
      return make("li", {}, swatch, family);
    });
    const more = this.data.families.length - shown.length;
    if (more > 0) {
      const swatch = make("i");
      swatch.style.background = "var(--series-8)";
      shown.push(make("li", {}, swatch, more > 1 ? `${more} more families` : this.data.families.at(-1)));
    }
    this.isTied = this.data.sides[0].kernels.some((kernel) => kernel[3] >= 0);
    if (this.isTied) shown.push(make("li", {}, make("i", { className: "alone" }), "nothing corresponds"));
    return make("ul", { className: "key" }, ...shown);
  }

  choose() {
    this.steps = this.data.sides.map((side, n) => side.steps[this.chosen[n]]);
    this.boxes = this.steps.map(boxesOf);
    this.ties = tie(this.data.sides, this.boxes);
    const work = workByStream(this.steps, this.boxes);
    this.lanes = this.steps.map((step, n) => lanesOf(step, this.boxes[n], work));
    this.selects.forEach((label, n) => { label.querySelector("select").selectedIndex = this.chosen[n]; });
    this.selected = null;
    const starts = this.boxes.flat().map((box) => box.start);
    this.ends = [starts.reduce((a, b) => Math.min(a, b), 0), Math.max(1, ...this.steps.map((step) => step.dur))];
    this.said.textContent = this.about();
    this.whole();
  }

  about() {
    const counts = this.boxes.map((boxes) => boxes.reduce((sum, box) => sum + box.launches, 0));
    const launches = `${counts[0].toLocaleString("en")} and ${counts[1].toLocaleString("en")} launches`;
    const ties = this.isTied ? `, of which ${this.ties.toLocaleString("en")} correspond` : "";
    return `The difference is ${signed(this.steps[1].dur - this.steps[0].dur)}: ${launches}${ties}.`;
  }

  whole() {
    this.view = [...this.ends];
    this.draw();
  }

  zoom(factor, at = this.middle()) {
    const [from, to] = this.view;
    const length = Math.min(Math.max((to - from) * factor, SHORTEST), this.ends[1] - this.ends[0]);
    this.move(at - (at - from) * (length / (to - from)), length);
  }

  move(from, length = this.view[1] - this.view[0]) {
    const first = Math.max(this.ends[0], Math.min(from, this.ends[1] - length));
    this.view = [first, first + length];
    this.draw();
  }

  middle() {
    const box = this.selected?.box;
    const isSeen = box && box.start < this.view[1] && box.start + box.dur > this.view[0];
    return isSeen ? box.start + box.dur / 2 : (this.view[0] + this.view[1]) / 2;
  }

  // Words.

  name(box, n) {
    return box.kernel < 0 ? `${box.launches} launches` : this.data.sides[n].kernels[box.kernel][0];
  }

  describe(box, n) {
    const whole = box.kernel < 0 ? `${box.launches} short launches, ${duration(box.summed)} summed`
      : this.data.sides[n].kernels[box.kernel][1];
    const where = `stream ${this.steps[n].streams[box.stream]}`;
    const own = `${this.data.sides[n].head}, ${where}: ${whole}, ${duration(box.dur)} at ${duration(box.start)}.`;
    if (!this.isTied || box.kernel < 0) return own;
    const other = this.data.sides[1 - n].head;
    if (!box.tie) return `${own} In the ${other.toLowerCase()}'s step nothing corresponds.`;
    const [before, after] = n ? [box.tie, box] : [box, box.tie];
    const renamed = this.data.sides[1 - n].kernels[box.tie.kernel][1];
    const what = renamed === whole ? "" : `${renamed}, `;
    return `${own} ${other}: ${what}${duration(box.tie.dur)} at ${duration(box.tie.start)}. `
      + `The change is ${signed(after.dur - before.dur)}.`;
  }

  select(box, n) {
    this.selected = box && { box, n };
    this.said.textContent = box ? this.describe(box, n) : this.about();
    const length = this.view[1] - this.view[0];
    if (box && (box.start + box.dur < this.view[0] || box.start > this.view[1])) {
      this.move(box.start + box.dur / 2 - length / 2);
    } else this.draw();
  }

  // Input.

  at(event) {
    const frame = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const n = y < this.tops[1] - HEAD ? 0 : 1;
    const lane = this.lanes[n][Math.floor((y - this.tops[n]) / LANE)];
    const ns = this.view[0] + ((x - this.left) / this.width) * (this.view[1] - this.view[0]);
    const near = ((this.view[1] - this.view[0]) / this.width) * 3;
    let [found, best] = [null, near];
    for (const box of (x < this.left || !lane ? [] : lane.boxes)) {
      const away = Math.max(box.start - ns, ns - box.start - box.dur, 0);
      if (away <= best) [found, best] = [box, away];
    }
    return { box: found, n, ns, x, y };
  }

  listen() {
    const { canvas } = this;
    let held = null;
    canvas.onpointerdown = (event) => {
      held = { x: event.clientX, from: this.view[0], moved: false };
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => {
      if (held) {
        const away = event.clientX - held.x;
        held.moved ||= Math.abs(away) > 4;
        if (held.moved) this.move(held.from - (away / this.width) * (this.view[1] - this.view[0]));
        return;
      }
      const { box, n, x, y } = this.at(event);
      this.tip.hidden = !box;
      if (!box) return;
      this.tip.textContent = this.describe(box, n);
      const widest = Math.min(360, this.holder.clientWidth - 16);
      this.tip.style.maxWidth = `${widest}px`;
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.holder.clientWidth - widest - 8))}px`;
      this.tip.style.top = `${canvas.offsetTop + y + 18}px`;
    };
    canvas.onpointerleave = () => { this.tip.hidden = true; };
    canvas.onpointerup = (event) => {
      const isClick = held && !held.moved;
      held = null;
      if (!isClick) return;
      const { box, n } = this.at(event);
      this.select(box, n);
    };
    canvas.onpointercancel = () => { held = null; };
    canvas.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey)) return; // else the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(event).ns);
    }, { passive: false });
    canvas.onkeydown = (event) => this.press(event);
    new ResizeObserver(() => this.draw()).observe(canvas);
    new MutationObserver(() => this.draw()).observe(root, { attributes: true, attributeFilter: ["data-theme", "class"] });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const quarter = (this.view[1] - this.view[0]) / 4;
    const act = {
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      ArrowUp: () => this.cross(0),
      ArrowDown: () => this.cross(1),
      "+": () => this.zoom(0.5),
      w: () => this.zoom(0.5),
      "-": () => this.zoom(2),
      s: () => this.zoom(2),
      a: () => this.move(this.view[0] - quarter),
      d: () => this.move(this.view[0] + quarter),
      0: () => this.whole(),
      Escape: () => this.select(null, 0),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  ordered(n) {
    return [...this.boxes[n]].sort((a, b) => a.start - b.start || a.row - b.row);
  }

  step(by) {
    const n = this.selected?.n ?? 0;
    const boxes = this.ordered(n);
    const at = this.selected ? boxes.indexOf(this.selected.box) + by : 0;
    if (boxes[at]) this.select(boxes[at], n);
  }

  cross(n) {
    const own = this.selected?.box;
    if (this.selected?.n === n || !this.boxes[n].length) return;
    const near = (box) => Math.abs(box.start - (own?.start ?? 0));
    this.select(own?.tie ?? this.ordered(n).reduce((a, b) => (near(b) < near(a) ? b : a)), n);
  }
}

  document.querySelectorAll(".step-lines").forEach((holder) => new StepLines(holder));
