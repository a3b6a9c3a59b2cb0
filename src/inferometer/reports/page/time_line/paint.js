// Draws rows into a buffer of pixels, which is quick without a GPU, and words and lines on top of it.

const LEAST_LABEL = 26; // CSS pixels
const FONT = "11px system-ui, sans-serif";

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.widths = new Map();
  }

  size(width, height, ratio) {
    this.ratio = ratio;
    this.width = Math.max(1, Math.round(width * ratio));
    this.height = Math.max(1, Math.round(height * ratio));
    if (this.canvas.width !== this.width || this.canvas.height !== this.height || !this.image) {
      this.canvas.width = this.width;
      this.canvas.height = this.height;
      this.image = this.context.createImageData(this.width, this.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  // `scene`: view, layout, palette, top (scrolled away), found (names to stand out, or null), source
  draw(scene, answers) {
    this.scene = scene;
    this.scale = this.width / scene.view.width;
    this.labels = [];
    this.pixels.fill(scene.palette.pixel("paper"));
    for (const item of scene.layout.within(scene.top, scene.top + this.height / this.ratio)) {
      if (item.lane) this.band(item);
    }
    for (const answer of answers) {
      const spot = scene.layout.spot(answer.row);
      if (spot) this.row(answer, spot);
    }
    this.context.putImageData(this.image, 0, 0);
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.writeLabels();
  }

  band(item) {
    const [top, bottom] = this.span(item.top, item.y + item.height - item.top);
    this.pixels.fill(this.scene.palette.band, top * this.width, bottom * this.width);
  }

  // First and last line of pixels of something that is so high, as far as they are in sight.
  span(y, height) {
    const top = Math.round((y - this.scene.top) * this.ratio);
    const bottom = Math.round((y - this.scene.top + height) * this.ratio);
    return [Math.min(Math.max(top, 0), this.height), Math.min(Math.max(bottom, 0), this.height)];
  }

  x(ns) { return (ns - this.scene.view.start) * this.scale; }

  fill(left, right, top, bottom, color) {
    for (let y = top; y < bottom; y += 1) this.pixels.fill(color, y * this.width + left, y * this.width + right);
  }

  row(answer, { y, height }) {
    const [top, bottom] = this.span(y, height);
    if (top === bottom) return;
    this.slices(answer, top, bottom, Math.round(height * this.ratio));
    const { palette, found } = this.scene;
    const { start, dur, name, category } = answer.line;
    const gap = this.ratio;
    const room = LEAST_LABEL * this.ratio;
    for (let i = answer.from; i < answer.to; i += 1) {
      const event = answer.single[i];
      const called = name[event];
      const left = Math.min(Math.max(0, Math.floor(this.x(start[event]))), this.width - 1);
      let right = Math.min(this.width, Math.max(left + 1, Math.round(this.x(start[event] + dur[event]))));
      if (right - left > 3 * gap && right < this.width) right -= Math.round(gap);
      const colors = found && !found.has(called) ? palette.faint : palette.fill;
      const color = colors[category[called]][shadeOf(called)];
      this.fill(left, right, top, bottom, color);
      if (right - left >= room) this.labels.push([left, right, y, height, called, colors === palette.faint]);
    }
  }

  // Slices as columns of categories: as high as they are busy.
  slices({ level, slices, sliceFrom, sliceTo }, top, bottom, height) {
    const size = 2 ** level;
    const { palette, found } = this.scene;
    let at = -1;
    let low = bottom;
    let left = 0;
    let right = 0;
    for (let i = sliceFrom; i < sliceTo; i += 1) {
      if (slices.at[i] !== at) {
        at = slices.at[i];
        low = bottom;
        left = Math.min(Math.max(0, Math.floor(this.x(at * size))), this.width - 1);
        right = Math.min(this.width, Math.max(left + 1, Math.floor(this.x((at + 1) * size))));
      }
      const high = Math.max(top, low - Math.max(1, Math.round((slices.ns[i] / size) * height)));
      const colors = found && !found.has(slices.longest[i]) ? palette.faint : palette.fill;
      if (left < right) this.fill(left, right, high, low, colors[slices.category[i]][0]);
      low = high;
    }
  }

  writeLabels() {
    const { context, ratio } = this;
    const { palette, source } = this.scene;
    context.font = FONT;
    context.textBaseline = "middle";
    for (const [left, right, y, height, name, isFaint] of this.labels) {
      const text = this.fitted(source.about.labels[name] || source.about.names[name], (right - left) / ratio - 6);
      if (!text) continue;
      const category = source.line.category[name];
      context.fillStyle = isFaint ? palette.css.muted : palette.text[category][shadeOf(name)];
      context.fillText(text, left / ratio + 3, y - this.scene.top + height / 2 + 0.5);
    }
  }

  fitted(text, room) {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = this.context.measureText(text).width;
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, width);
    }
    if (width <= room) return text;
    const letters = Math.floor((text.length * room) / width) - 1;
    return letters >= 2 ? `${text.slice(0, letters)}…` : "";
  }

  // CSS pixels of a time.
  at(ns) { return this.x(ns) / this.ratio; }

  counter(item, palette) {
    const { time, value } = item.lane.samples;
    const { context } = this;
    const { view } = this.scene;
    const height = item.y + item.height - item.top;
    const base = item.top - this.scene.top + height - 2;
    if (item.low === undefined) [item.low, item.high] = extremes(value);
    const span = item.high - item.low || 1;
    const level = (each) => base - ((each - item.low) / span) * (height - 6);
    const last = Math.min(time.length, lowerBound(time, view.end) + 1);
    context.beginPath();
    let column = NaN;
    let [low, high, latest] = [0, 0, 0];
    const flush = () => [low, high, latest].forEach((y) => context.lineTo(column, y));
    for (let i = Math.max(0, lowerBound(time, view.start) - 1); i < last; i += 1) {
      const x = Math.round(this.at(time[i]));
      const y = level(value[i]);
      if (x !== column) {
        if (!Number.isNaN(column)) flush();
        column = x;
        [low, high] = [y, y];
        context.lineTo(x, y);
      }
      [low, high, latest] = [Math.min(low, y), Math.max(high, y), y];
    }
    if (!Number.isNaN(column)) flush();
    context.strokeStyle = palette.css.accent;
    context.lineWidth = 1;
    context.stroke();
  }

  range(start, end, palette, isSoft) {
    const [left, right] = [this.at(start), this.at(end)];
    const { context } = this;
    context.fillStyle = palette.css.accent;
    context.globalAlpha = isSoft ? 0.06 : 0.12;
    context.fillRect(left, 0, Math.max(1, right - left), this.height / this.ratio);
    context.globalAlpha = 1;
    context.fillRect(left, 0, 1, this.height / this.ratio);
    context.fillRect(right - 1, 0, 1, this.height / this.ratio);
  }

  outline(start, end, { y, height }, palette) {
    const left = this.at(start);
    const right = Math.max(left + 2, this.at(end));
    this.context.strokeStyle = palette.css.ink;
    this.context.lineWidth = 2;
    this.context.strokeRect(left - 1, y - this.scene.top - 1, right - left + 2, height + 2);
  }

  arrow(from, to, palette) {
    const { context } = this;
    const [x, y] = [this.at(from.time), from.y - this.scene.top];
    const [endX, endY] = [this.at(to.time), to.y - this.scene.top];
    const bend = Math.max(20, Math.abs(endX - x) / 3);
    context.strokeStyle = palette.css.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + bend, y, endX - bend, endY, endX, endY);
    context.stroke();
    context.fillStyle = palette.css.ink;
    context.beginPath();
    context.moveTo(endX, endY);
    context.lineTo(endX - 7, endY - 3.5);
    context.lineTo(endX - 7, endY + 3.5);
    context.fill();
  }
}

function extremes(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
