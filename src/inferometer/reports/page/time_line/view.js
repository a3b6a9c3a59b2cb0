// The window of time that is seen, in ns from the origin, and times as people read them.

const NARROWEST = 40; // ns

class View {
  constructor(length) {
    this.length = Math.max(length, NARROWEST);
    this.start = 0;
    this.end = this.length;
  }

  get width() { return this.end - this.start; }

  show(start, end) {
    const width = Math.min(Math.max(end - start, NARROWEST), this.length);
    const middle = (start + end) / 2;
    this.start = Math.min(Math.max(middle - width / 2, 0), this.length - width);
    this.end = this.start + width;
  }

  showAll() { this.show(0, this.length); }

  // With room on both sides, so that what stands around it is seen, too.
  showAround(start, end) {
    const room = Math.max(end - start, NARROWEST) * 0.35;
    this.show(start - room, end + room);
  }

  pan(ns) { this.show(this.start + ns, this.end + ns); }

  // `factor` above 1 goes closer; what lies at `at` stays where it is.
  zoom(factor, at) {
    const width = Math.min(Math.max(this.width / factor, NARROWEST), this.length);
    const start = at - (at - this.start) * (width / this.width);
    this.show(start, start + width);
  }

  // The window as far as needed for this to be seen.
  reveal(start, end) {
    if (start >= this.start && end <= this.end) return;
    const width = Math.max(this.width, (end - start) * 1.2);
    this.show((start + end - width) / 2, (start + end + width) / 2);
  }
}

const TIME_UNITS = [["ns", 1], ["μs", 1e3], ["ms", 1e6], ["s", 1e9]];
const withCommas = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

function timeText(ns) {
  const size = Math.abs(ns);
  let unit = 0;
  while (unit < 3 && size >= TIME_UNITS[unit + 1][1] * 0.9999995) unit += 1;
  if (unit === 0) return `${withCommas(Math.round(ns))} ns`;
  const [whole, part] = (ns / TIME_UNITS[unit][1]).toFixed(3).split(".");
  return `${withCommas(whole)}.${part} ${TIME_UNITS[unit][0]}`;
}

const exactText = (ns) => `${withCommas(Math.round(ns))} ns`;

// Times of a ruler: round ones, about `room` pixels apart, in one unit.
function ticks(view, pixels, room = 110) {
  const rough = (view.width / pixels) * room;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough));
  let unit = 0;
  while (unit < 3 && step >= TIME_UNITS[unit + 1][1] / 10 && view.end >= TIME_UNITS[unit + 1][1]) unit += 1;
  const [name, size] = TIME_UNITS[unit];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const found = [];
  for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) {
    found.push({ at, text: `${withCommas((at / size).toFixed(digits))} ${name}` });
  }
  return found;
}
