// Above the lanes: all of the time with a frame around what is seen, a ruler, and marks of what stands out.

const OVERVIEW = 26;
const RULER = 20;
const MARKS = 12;
const HEAD = OVERVIEW + RULER + MARKS;

class Head {
  constructor(canvas, source) {
    this.canvas = canvas;
    this.source = source;
    this.context = canvas.getContext("2d");
    this.whole = null;
  }

  size(width, ratio) {
    this.width = width;
    this.ratio = ratio;
    if (this.canvas.width !== Math.round(width * ratio)) this.whole = null;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.round(HEAD * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${HEAD}px`;
  }

  // Busy time of all streams, or where there are none of all lanes, in each pixel of the overview.
  async activity(view) {
    const { lanes } = this.source.about;
    const streams = lanes.filter((lane) => lane.kind === "stream");
    const shown = (streams.length ? streams : lanes).slice(0, 200).map((lane) => lane.index);
    const busy = new Float64Array(Math.max(1, Math.floor(this.width)));
    const scale = busy.length / view.length;
    for (const { line, single, from, to, slices, sliceFrom, sliceTo, level } of
      await this.source.rows(shown, 0, view.length, this.width * this.ratio)) {
      for (let i = from; i < to; i += 1) spread(busy, line.start[single[i]] * scale, line.dur[single[i]] * scale, 1);
      const size = 2 ** level;
      for (let i = sliceFrom; i < sliceTo; i += 1) {
        spread(busy, slices.at[i] * size * scale, size * scale, slices.ns[i] / size);
      }
    }
    this.whole = busy;
  }

  draw({ view, palette, range, marks, mark }) {
    const { context, width } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, width, HEAD);
    if (this.whole) {
      const most = Math.max(1, ...this.whole);
      context.fillStyle = palette.css.accent;
      context.globalAlpha = 0.75;
      this.whole.forEach((busy, x) => {
        const height = Math.min(1, busy / most) * (OVERVIEW - 6);
        if (busy > 0) context.fillRect(x, OVERVIEW - 3 - Math.max(1, height), 1, Math.max(1, height));
      });
      context.globalAlpha = 1;
    }
    const [left, right] = [(view.start / view.length) * width, (view.end / view.length) * width];
    context.fillStyle = palette.css.paper;
    context.globalAlpha = 0.65;
    context.fillRect(0, 0, left, OVERVIEW);
    context.fillRect(right, 0, width - right, OVERVIEW);
    context.globalAlpha = 1;
    context.strokeStyle = palette.css.muted;
    context.lineWidth = 1;
    context.strokeRect(Math.max(0.5, left), 0.5, Math.max(2, Math.min(right, width - 0.5) - Math.max(0.5, left)), OVERVIEW - 1);
    this.ruler(view, palette, range);
    this.marks(view, palette, marks, mark);
  }

  ruler(view, palette, range) {
    const { context, width } = this;
    const at = (ns) => ((ns - view.start) / view.width) * width;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillStyle = palette.css.muted;
    for (const tick of ticks(view, width)) {
      const x = at(tick.at);
      context.fillRect(Math.round(x), OVERVIEW + RULER - 6, 1, 6);
      const room = context.measureText(tick.text).width;
      if (x + 3 + room < width) context.fillText(tick.text, x + 3, OVERVIEW + RULER / 2);
    }
    if (!range) return;
    const [left, right] = [Math.max(0, at(range.start)), Math.min(width, at(range.end))];
    if (right <= left) return;
    context.fillStyle = palette.css.accent;
    context.fillRect(left, OVERVIEW + RULER - 3, right - left, 3);
  }

  marks(view, palette, marks, chosen) {
    const { context, width } = this;
    for (const mark of marks) {
      const left = ((mark.start - view.start) / view.width) * width;
      const right = ((mark.end - view.start) / view.width) * width;
      if (right < 0 || left > width) continue;
      context.fillStyle = palette.css[mark.tone] || palette.css.muted;
      context.globalAlpha = mark === chosen ? 1 : 0.7;
      context.fillRect(left, OVERVIEW + RULER + 2, Math.max(3, right - left), MARKS - 4);
    }
    context.globalAlpha = 1;
  }

  // The mark under a point; the shortest of several.
  markAt(x, y, view, marks) {
    if (y < OVERVIEW + RULER) return null;
    const near = (mark) => {
      const left = ((mark.start - view.start) / view.width) * this.width;
      const right = Math.max(left + 3, ((mark.end - view.start) / view.width) * this.width);
      return x >= left - 3 && x <= right + 3;
    };
    return marks.filter(near).sort((a, b) => a.end - a.start - (b.end - b.start))[0] || null;
  }
}

function spread(busy, from, length, weight) {
  let at = Math.max(0, Math.floor(from));
  for (const end = from + length; at < busy.length && at < end; at += 1) {
    busy[at] += weight * (Math.min(at + 1, end) - Math.max(at, from));
  }
}
