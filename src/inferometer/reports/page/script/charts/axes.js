// Axes of charts: categories, numbers and logarithms to pixels, and ticks that don't touch each other.

const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const power = (n) => `10${n < 0 ? "⁻" : ""}${[...String(Math.abs(n))].map((digit) => SUPERSCRIPT[digit]).join("")}`;

function tickText(value, step, format) {
  if (format?.endsWith("%")) return `${Number((value * 100).toFixed(4))}%`;
  const digits = step ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : 0;
  if (step) return grouped(value.toFixed(Math.min(digits, 12)));
  const exponent = Math.floor(Math.log10(value) + 1e-9);
  if (exponent < -3 || exponent > 5) return value === 10 ** exponent ? power(exponent) : value.toExponential(0);
  return grouped(String(Number(value.toPrecision(3))));
}

function niceStep(span, most) {
  const rough = span / Math.max(1, most);
  const ten = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * ten).find((step) => step >= rough * 0.999);
}

class Axis {
  // `values` are all that is drawn along it; `solid` says that bars stand on its zero.
  // `whole` says that nothing stands between whole numbers, as of steps.
  constructor(options, values, { solid = false, room = 0.03, whole = false } = {}) {
    this.options = options;
    this.isWhole = whole;
    this.isLog = options.type === "log";
    this.isCategory = options.type === "category" || values.some((value) => typeof value === "string");
    this.isReversed = options.autorange === "reversed";
    if (this.isCategory) {
      this.names = [...new Set([...(options.categoryarray || []), ...values.filter((value) => value !== null)])];
      this.places = new Map(this.names.map((name, place) => [name, place]));
      [this.low, this.high] = [0, Math.max(1, this.names.length)];
    } else {
      [this.low, this.high] = this.extent(values.filter(Number.isFinite), solid, room);
    }
  }

  extent(values, solid, room) {
    const of = (value) => (this.isLog ? Math.log10(value) : value);
    if (this.options.range) return this.options.range;
    const known = this.isLog ? values.filter((value) => value > 0) : values;
    if (!known.length) return [0, 1];
    let low = of(known.reduce((a, b) => Math.min(a, b)));
    let high = of(known.reduce((a, b) => Math.max(a, b)));
    const standsOnZero = !this.isLog && (solid || this.options.rangemode === "tozero");
    if (standsOnZero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
    if (low === high) [low, high] = standsOnZero ? [low, low + 1] : [low - 0.5, high + 0.5];
    const more = (high - low) * room;
    return [standsOnZero && low === 0 ? 0 : low - more, standsOnZero && high === 0 ? 0 : high + more];
  }

  // From one pixel to another; the second may be smaller.
  over(begin, end) {
    [this.begin, this.end] = this.isReversed ? [end, begin] : [begin, end];
    return this;
  }

  get size() {
    return Math.abs(this.end - this.begin);
  }

  unit(value) {
    if (this.isCategory) return (this.places.get(value) ?? NaN) + 0.5;
    return this.isLog ? Math.log10(value) : value;
  }

  at(value, offset = 0) {
    const share = (this.unit(value) + offset - this.low) / (this.high - this.low);
    return this.begin + share * (this.end - this.begin);
  }

  // The number at a pixel, as `range` has it: of a logarithmic axis an exponent.
  back(pixel) {
    return this.low + ((pixel - this.begin) / (this.end - this.begin)) * (this.high - this.low);
  }

  ticks(space) {
    if (this.isCategory) {
      const every = Math.max(1, Math.ceil((space * this.names.length) / this.size));
      return this.names.filter((name, place) => place % every === 0).map((name) => ({ value: name, text: String(name) }));
    }
    return this.isLog ? this.logTicks(space) : this.linearTicks(space);
  }

  linearTicks(space) {
    const nice = niceStep(this.high - this.low, Math.floor(this.size / space));
    const step = this.isWhole ? Math.max(1, nice) : nice;
    const ticks = [];
    for (let n = Math.ceil(this.low / step - 1e-9); n * step <= this.high + step * 1e-9; n += 1) {
      ticks.push({ value: n * step, text: tickText(n * step, step, this.options.tickformat) });
    }
    return ticks;
  }

  logTicks(space) {
    const decades = this.high - this.low;
    const factors = decades < 0.9 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : decades < 2.5 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil((decades * space) / this.size));
    const ticks = [];
    for (let n = Math.floor(this.low); n <= Math.ceil(this.high); n += 1) {
      if (factors.length === 1 && n % every !== 0) continue;
      for (const factor of factors) {
        const value = Number((factor * 10 ** n).toPrecision(6));
        const at = Math.log10(value);
        if (at >= this.low - 1e-9 && at <= this.high + 1e-9) ticks.push({ value, text: tickText(value) });
      }
    }
    if (ticks.length >= 2 || factors.length === 8) return ticks;
    return [this.low, this.high].map((end) => {
      const value = Number((10 ** end).toPrecision(2));
      return { value, text: tickText(value) };
    });
  }
}
