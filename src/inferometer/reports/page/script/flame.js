// Flame graphs: boxes below their callers, as wide as their time; search, a path to go up by, and the arrow keys.
// Boxes are placed in shares of the width: nothing has to be drawn anew for another window, theme or paper.

const ROW = 22; // pixels
const LEAST = 0.0008; // of the width: thinner boxes can't be seen
const LABELLED = 0.02;

// Where a tree has several roots, what is above all of them.
function withOneRoot(trace) {
  const isRoot = trace.parents.map((parent) => !trace.ids.includes(parent));
  if (isRoot.filter(Boolean).length === 1) return trace;
  const sum = trace.values.reduce((total, value, index) => total + (isRoot[index] ? value : 0), 0);
  const name = "all of it";
  return {
    ...trace,
    ids: [name, ...trace.ids],
    parents: ["", ...trace.parents.map((parent, index) => (isRoot[index] ? name : parent))],
    labels: [name, ...trace.labels],
    customdata: [name, ...trace.customdata],
    values: [sum, ...trace.values],
    text: [formatted("ns", sum), ...trace.text],
    marker: { ...trace.marker, colors: ["var(--line)", ...trace.marker.colors] },
  };
}

class Flame {
  // `share` is how wide it is of its place, `legend` what its colours stand for.
  constructor(plot, trace, legend, share) {
    this.plot = plot;
    this.trace = trace;
    this.legend = legend;
    this.share = share;
    this.deepest = trace.maxdepth || Infinity;
    this.ids = new Map(trace.ids.map((id, index) => [id, index]));
    this.parents = trace.parents.map((parent) => this.ids.get(parent) ?? -1);
    this.children = trace.ids.map(() => []);
    this.depths = [];
    this.parents.forEach((parent, index) => {
      if (parent >= 0) this.children[parent].push(index);
      this.depths[index] = parent >= 0 ? this.depths[parent] + 1 : 0;
    });
    this.place();
    this.found = [];
    this.build();
    this.goTo(0);
  }

  // Where each box begins and ends, in shares of the whole.
  place() {
    const values = this.trace.values;
    const whole = values[0] || 1;
    this.begins = [0];
    this.ends = [1];
    this.children.forEach((children, index) => {
      let at = this.begins[index];
      for (const child of children) {
        this.begins[child] = at;
        at += values[child] / whole;
        this.ends[child] = at;
      }
    });
  }

  build() {
    const name = [this.plot.dataset.title, this.trace.name].filter(Boolean).join(", ");
    this.path = make("nav", { className: "flame-path" });
    this.path.setAttribute("aria-label", `Path in ${name}`);
    const tools = make("div", { className: "tools" }, this.searchField(name), this.count = make("output"));
    this.tree = make("div", { className: "flame" });
    this.tree.setAttribute("role", "tree");
    this.tree.setAttribute("aria-label", `${name}: Enter goes into a box, Escape back up`);
    this.boxes = this.trace.ids.map((id, index) => this.box(index));
    this.tree.append(...this.boxes);
    this.tip = make("output", { className: "tip flame-tip", hidden: true });
    this.tree.addEventListener("keydown", (event) => this.press(event));
    this.tree.addEventListener("click", (event) => this.click(event));
    this.tree.addEventListener("pointerover", (event) => this.tell(event.target.closest(".box")));
    this.tree.addEventListener("pointerleave", () => this.tell(null));
    this.tree.addEventListener("focusin", (event) => this.tell(event.target));
    this.tree.addEventListener("focusout", () => this.tell(null));
    this.tree.style.maxWidth = `${this.share * 100}%`;
    const title = this.trace.name ? [make("p", { className: "flame-name", textContent: this.trace.name })] : [];
    const parts = [...title, tools, ...(this.legend.length ? [this.keys()] : []), this.path, this.tree, this.tip];
    this.plot.append(make("div", { className: "flame-holder" }, ...parts));
  }

  searchField(name) {
    this.search = make("input", { type: "search", placeholder: "Search", autocomplete: "off", spellcheck: false });
    this.search.setAttribute("aria-label", `Search ${name}`);
    this.search.oninput = () => this.find(this.search.value);
    this.search.onkeydown = (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    };
    return this.search;
  }

  keys() {
    const items = this.legend.map((trace) => {
      const sample = make("i");
      sample.style.setProperty("--box", trace.marker.color);
      return make("span", {}, sample, trace.name);
    });
    return make("div", { className: "legend flame-keys" }, ...items);
  }

  box(index) {
    const { labels, marker } = this.trace;
    const color = marker.colors[index];
    const kind = /slower|faster/.test(color) ? (/3\)$/.test(color) ? " change strong" : " change") : "";
    const box = make("div", { className: `box${kind}`, tabIndex: -1 });
    box.append(make("span", { textContent: labels[index] }));
    box.dataset.index = index;
    box.style.setProperty("--box", color);
    box.setAttribute("role", "treeitem");
    box.setAttribute("aria-level", this.depths[index] + 1);
    const [label, whole] = [labels[index], this.trace.customdata[index]];
    box.setAttribute("aria-label", `${label === whole ? label : `${label}, ${whole}`}: ${this.trace.text[index]}`);
    return box;
  }

  pathOf(index) {
    const path = [];
    for (let at = index; at >= 0; at = this.parents[at]) path.unshift(at);
    return path;
  }

  goTo(index, { focus = false } = {}) {
    this.current = index;
    const [begin, span] = [this.begins[index], this.ends[index] - this.begins[index] || 1];
    const above = new Set(this.pathOf(index));
    const first = Math.max(0, this.depths[index] - 1);
    let deepest = 0;
    this.boxes.forEach((box, n) => {
      const isAbove = above.has(n);
      const left = isAbove ? 0 : (this.begins[n] - begin) / span;
      const width = isAbove ? 1 : (this.ends[n] - this.begins[n]) / span;
      const level = this.depths[n] - first;
      const isSeen = level >= 0 && level < this.deepest && width >= LEAST && (isAbove || (this.depths[n] > this.depths[index] && left > -1e-9 && left < 1));
      box.hidden = !isSeen;
      if (!isSeen) return;
      deepest = Math.max(deepest, level);
      Object.assign(box.style, { left: `${left * 100}%`, width: `${width * 100}%`, top: `${level * ROW}px` });
      box.classList.toggle("bare", width < LABELLED);
    });
    this.tree.style.height = `${(deepest + 1) * ROW}px`;
    this.boxes.forEach((box) => { box.tabIndex = -1; });
    this.boxes[index].tabIndex = 0;
    this.showPath();
    if (focus) this.boxes[index].focus();
  }

  showPath() {
    const path = this.pathOf(this.current);
    this.path.replaceChildren(...path.map((index, n) => {
      const step = make("button", { type: "button", textContent: this.trace.labels[index], title: this.trace.customdata[index] });
      if (n === path.length - 1) step.setAttribute("aria-current", "location");
      step.onclick = () => this.goTo(index);
      return step;
    }));
    this.path.hidden = path.length < 2;
  }

  click(event) {
    const box = event.target.closest(".box");
    if (!box) return;
    const index = Number(box.dataset.index);
    this.goTo(index === this.current ? Math.max(0, this.parents[index]) : index);
  }

  press(event) {
    const at = Number(event.target.closest(".box")?.dataset.index ?? this.current);
    const seen = (boxes) => boxes.filter((index) => !this.boxes[index].hidden);
    const siblings = seen(this.children[this.parents[at]] || [at]);
    const beside = (step) => siblings[siblings.indexOf(at) + step];
    const move = {
      ArrowUp: () => this.parents[at],
      ArrowDown: () => seen(this.children[at])[0],
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => this.current,
    }[event.key];
    if (move) {
      const to = move();
      if (to >= 0 && !this.boxes[to].hidden) this.focus(to);
    } else if (event.key === "Enter" || event.key === " ") this.goTo(at, { focus: true });
    else if (event.key === "Escape") this.goTo(Math.max(0, this.parents[this.current]), { focus: true });
    else return;
    event.preventDefault();
  }

  focus(index) {
    this.boxes.forEach((box) => { box.tabIndex = -1; });
    this.boxes[index].tabIndex = 0;
    this.boxes[index].focus();
  }

  tell(box) {
    this.tip.hidden = !box;
    if (!box) return;
    const index = Number(box.dataset.index);
    this.tip.textContent = `${this.trace.customdata[index]}\n${this.trace.text[index]}`;
    const left = Math.min(box.offsetLeft, this.tree.clientWidth - this.tip.offsetWidth);
    const above = this.tree.offsetTop + box.offsetTop;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${above + ROW + 4}px)`;
  }

  // Of nested boxes that match only the outer one counts: time is added up once.
  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const isFound = this.trace.customdata.map((name, index) => words.length > 0 &&
      words.every((word) => `${name} ${this.trace.labels[index]}`.toLowerCase().includes(word)));
    this.found = isFound.flatMap((is, index) => (is ? [index] : []));
    this.tree.classList.toggle("searched", words.length > 0);
    this.boxes.forEach((box, index) => box.classList.toggle("found", isFound[index]));
    const outer = this.found.filter((index) => !this.pathOf(index).slice(0, -1).some((above) => isFound[above]));
    const sum = outer.reduce((total, index) => total + this.trace.values[index], 0);
    const share = formatted("share", sum / (this.trace.values[0] || 1));
    const boxes = this.found.length === 1 ? "1 box" : `${grouped(String(this.found.length))} boxes`;
    this.count.textContent = words.length ? `${boxes}, ${formatted("ns", sum)}, ${share} of all` : "";
    this.shown = -1;
  }

  searchFor(text) {
    this.search.value = text;
    this.find(text);
    this.next(1);
  }

  next(step) {
    if (!this.found.length) return;
    this.shown = (this.shown + step + this.found.length) % this.found.length;
    const index = this.found[this.shown];
    this.goTo(Math.max(0, this.parents[index]));
    this.boxes.forEach((box) => box.classList.remove("here"));
    this.boxes[index].classList.add("here");
    this.tell(this.boxes[index]);
  }
}
