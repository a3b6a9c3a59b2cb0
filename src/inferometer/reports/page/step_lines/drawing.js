// Both steps on a canvas, one below the other on one time axis.

class Drawing {
  layout() {
    this.left = this.canvas.clientWidth < 480 ? 64 : 104;
    this.width = Math.max(1, this.canvas.clientWidth - this.left - 12);
    const tops = [AXIS + HEAD, AXIS + HEAD + this.lanes[0].length * LANE + BETWEEN + HEAD];
    this.tops = tops;
    return tops[1] + this.lanes[1].length * LANE + 8;
  }

  x(ns) {
    return this.left + ((ns - this.view[0]) / (this.view[1] - this.view[0])) * this.width;
  }

  draw() {
    const isPrinted = document.documentElement.classList.contains("printing");
    this.canvas.style.width = isPrinted ? `${PRINTED}px` : "";
    this.holder.style.colorScheme = isPrinted ? "light" : "";
    if (!this.canvas.clientWidth) return; // in a tab that is not seen
    const height = this.layout();
    const scale = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(this.canvas.clientWidth * scale);
    this.canvas.height = Math.round(height * scale);
    const style = getComputedStyle(this.canvas);
    const found = new Map();
    this.color = (name) => {
      if (!found.has(name)) {
        this.tip.style.color = `var(--${name})`;
        found.set(name, getComputedStyle(this.tip).color);
        this.tip.style.color = "";
      }
      return found.get(name);
    };
    const brush = this.canvas.getContext("2d");
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, this.canvas.clientWidth, height);
    brush.font = `12px ${style.fontFamily}`;
    brush.textBaseline = "middle";
    this.axis(brush, height);
    this.tied(brush);
    this.lanes.forEach((lanes, n) => this.side(brush, lanes, n));
  }

  axis(brush, height) {
    const span = this.view[1] - this.view[0];
    const most = Math.max(2, Math.floor(this.width / 110));
    const rough = span / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const pace = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough);
    const furthest = Math.max(...this.view.map(Math.abs));
    const thousands = Math.min(UNITS.ns.length - 1, Math.floor(Math.log10(Math.max(1, furthest)) / 3));
    const [size, unit] = [1000 ** thousands, UNITS.ns[thousands]];
    const digits = Math.max(0, Math.ceil(-Math.log10(pace / size) - 1e-9));
    brush.strokeStyle = this.color("line");
    brush.fillStyle = this.color("muted");
    brush.textAlign = "center";
    for (let at = Math.ceil(this.view[0] / pace) * pace; at <= this.view[1]; at += pace) {
      const x = Math.round(this.x(at)) + 0.5;
      brush.beginPath();
      brush.moveTo(x, AXIS - 4);
      brush.lineTo(x, height);
      brush.stroke();
      brush.fillText(`${(at / size).toFixed(digits)} ${unit}`, Math.min(x, this.left + this.width - 16), 8);
    }
  }

  side(brush, lanes, n) {
    const top = this.tops[n];
    const step = this.steps[n];
    const head = this.data.sides[n].head;
    brush.textAlign = "left";
    brush.fillStyle = this.color(n ? "series-2" : "series-1");
    brush.fillRect(0, top - HEAD + 8, 9, 9);
    brush.fillStyle = this.color("ink");
    brush.font = brush.font.replace(/^/, "600 ");
    const named = this.data.per === "recording" ? head : `${head}, step ${step.name}`;
    brush.fillText(`${named}: ${duration(step.dur)}, idle for ${duration(step.idle)}`, 16, top - HEAD + 13);
    brush.font = brush.font.replace(/^(600|bold) /, "");
    lanes.forEach((lane, row) => {
      const y = top + row * LANE;
      brush.fillStyle = this.color("muted");
      brush.fillText(fitted(brush, lane.name, this.left - 10), 0, y + LANE / 2);
      brush.fillStyle = this.color("surface");
      brush.fillRect(this.left, y + 1, this.width, LANE - 3);
      brush.save();
      brush.beginPath();
      brush.rect(this.left, y, this.width, LANE);
      brush.clip();
      lane.boxes.forEach((box) => this.box(brush, box, n, y));
      brush.restore();
    });
    const end = this.x(step.dur);
    if (end <= this.left + this.width + 1) {
      brush.fillStyle = this.color("ink");
      brush.fillRect(end - 1, top - 3, 2, lanes.length * LANE + 4);
    }
  }

  box(brush, box, n, y) {
    const from = this.x(box.start);
    const to = this.x(box.start + box.dur);
    if (to < this.left || from > this.left + this.width) return;
    const width = Math.max(to - from, 0.75);
    const family = box.kernel < 0 ? SERIES - 1 : Math.min(this.data.sides[n].kernels[box.kernel][2], SERIES - 1);
    const isSelected = this.selected && (this.selected.box === box || this.selected.box.tie === box);
    brush.globalAlpha = box.kernel < 0 ? 0.45 : 1;
    brush.fillStyle = this.color(`series-${family + 1}`);
    brush.fillRect(from, y + 3, width > 3 ? width - 0.5 : width, LANE - 7);
    brush.globalAlpha = 1;
    if (this.isTied && !box.tie && box.kernel >= 0) {
      brush.fillStyle = this.color("ink");
      brush.fillRect(from, y, Math.max(width, 1.5), 3);
    }
    if (isSelected) {
      brush.strokeStyle = this.color("ink");
      brush.lineWidth = 2;
      brush.strokeRect(from - 1, y + 2, width + 2, LANE - 5);
      brush.lineWidth = 1;
    }
    const begin = Math.max(from, this.left) + 4;
    const room = Math.min(to, this.left + this.width) - begin - 4;
    if (room > 24) {
      brush.fillStyle = this.color("paper");
      brush.textAlign = "left";
      brush.fillText(fitted(brush, this.name(box, n), room), begin, y + LANE / 2);
    }
  }

  tied(brush) {
    const top = this.tops[0] + this.lanes[0].length * LANE;
    const bottom = this.tops[1] - HEAD;
    const isSeen = (box) => box.start < this.view[1] && box.start + box.dur > this.view[0];
    const line = (box, alpha) => {
      const [above, below] = [box, box.tie].map((each) => this.x(each.start + each.dur / 2));
      brush.globalAlpha = alpha;
      brush.beginPath();
      brush.moveTo(above, top);
      brush.lineTo(below, bottom);
      brush.stroke();
      brush.globalAlpha = 1;
    };
    brush.save();
    brush.beginPath();
    brush.rect(this.left, top, this.width, bottom - top);
    brush.clip();
    brush.strokeStyle = this.color("muted");
    this.boxes[0].filter((box) => box.tie && isSeen(box) && isSeen(box.tie))
      .sort((a, b) => b.dur + b.tie.dur - a.dur - a.tie.dur || a.row - b.row)
      .slice(0, TIED).forEach((box) => line(box, 0.45));
    const own = this.selected?.box;
    if (own?.tie) {
      brush.strokeStyle = this.color("ink");
      brush.lineWidth = 2;
      line(this.selected.n ? own.tie : own, 1);
      brush.lineWidth = 1;
    }
    brush.restore();
  }
}

function fitted(brush, text, room) {
  if (brush.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (brush.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}
