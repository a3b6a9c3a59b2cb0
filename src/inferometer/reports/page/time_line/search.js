// Search: names with all words of a text, how many events have them, and a way from one to the next.

// Events with one of these names, row by row: on each they are in order of time.
function eventsNamed(line, names) {
  const isNamed = new Uint8Array(line.category.length);
  names.forEach((name) => { isNamed[name] = 1; });
  const runs = [];
  for (let row = 0; row + 1 < line.rowEnds.length; row += 1) {
    const found = [];
    for (let event = line.rowEnds[row]; event < line.rowEnds[row + 1]; event += 1) {
      if (isNamed[line.name[event]]) found.push(event);
    }
    if (found.length) runs.push(Uint32Array.from(found));
  }
  return runs;
}

// Runs that are each in order of time, as one: merged by pairs, which of a million takes a tenth of sorting.
function inTime({ start }, runs) {
  while (runs.length > 1) {
    const merged = [];
    for (let i = 0; i < runs.length; i += 2) {
      const [a, b] = [runs[i], runs[i + 1] || new Uint32Array(0)];
      const both = new Uint32Array(a.length + b.length);
      for (let at = 0, j = 0, k = 0; at < both.length; at += 1) {
        const isFirst = k === b.length || (j < a.length && start[a[j]] <= start[b[k]]);
        both[at] = isFirst ? a[j++] : b[k++];
      }
      merged.push(both);
    }
    runs = merged;
  }
  return runs[0] || new Uint32Array(0);
}

class Search {
  constructor(viewer, { field, status, next, before }) {
    this.viewer = viewer;
    Object.assign(this, { field, status, next, before });
    this.events = null;
    this.at = -1;
    field.oninput = () => this.find(field.value);
    field.onkeydown = (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.clear();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    next.onclick = () => this.step(1);
    before.onclick = () => this.step(-1);
    this.find("");
  }

  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const { about, line } = this.viewer.source;
    this.events = null;
    this.at = -1;
    this.viewer.found = null;
    if (words.length) {
      const names = new Set();
      about.names.forEach((name, index) => {
        const full = `${name} ${about.labels[index] || ""}`.toLowerCase();
        if (words.every((word) => full.includes(word))) names.add(index);
      });
      this.events = inTime(line, eventsNamed(line, names));
      this.viewer.found = names;
      this.merged = 0;
      names.forEach((name) => { this.merged += about.name_count[name]; });
      this.merged -= this.events.length;
    }
    this.say();
    this.viewer.redraw();
  }

  say() {
    const has = Boolean(this.events && this.events.length);
    this.next.disabled = this.before.disabled = !has;
    if (!this.events) {
      this.status.textContent = "";
      return;
    }
    const place = this.at < 0 ? "" : `${withCommas(this.at + 1)} of `;
    const merged = this.merged ? `, ${withCommas(this.merged)} more merged` : "";
    const unknown = this.viewer.source.about.names_left_out;
    const unnamed = unknown ? `; ${withCommas(unknown)} names are only in what is merged` : "";
    this.status.textContent = `${place}${withCommas(this.events.length)} found${merged}${unnamed}`;
  }

  // To the next one, the first time from the start of what is seen.
  step(by) {
    if (!this.events || !this.events.length) return;
    const { line } = this.viewer.source;
    if (this.at < 0) {
      const first = lowerBoundAt(line.start, this.events, this.viewer.view.start);
      this.at = by > 0 ? first - 1 : first;
    }
    this.at = (this.at + by + this.events.length) % this.events.length;
    this.viewer.choose(this.events[this.at], { reveal: true });
    this.say();
  }

  clear() {
    this.field.value = "";
    this.find("");
    this.viewer.focus();
  }
}
