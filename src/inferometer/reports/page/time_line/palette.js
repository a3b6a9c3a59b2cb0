// The page's colours as numbers for a buffer of pixels. Names of one category differ a little in shade.

const SHADES = [0, 0.13, 0.26];

class Palette {
  constructor(element, colors) {
    const probe = document.createElement("i");
    probe.hidden = true;
    element.append(probe);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const read = (name) => {
      probe.style.color = `var(${name})`;
      context.fillStyle = getComputedStyle(probe).color;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
    };
    const names = ["paper", "surface", "ink", "muted", "line", "accent", "bad", "warning", "good"];
    this.rgb = Object.fromEntries(names.map((name) => [name, read(`--${name}`)]));
    const base = colors.map(([name, pale]) => mix(read(name), this.rgb.paper, pale));
    probe.remove();
    const shades = (mixed) => base.map((color) => SHADES.map((part) => mixed(color, part)));
    this.fill = shades((color, part) => packed(mix(color, this.rgb.paper, part)));
    this.faint = shades((color) => packed(mix(color, this.rgb.paper, 0.82)));
    this.text = shades((color, part) => (isLight(mix(color, this.rgb.paper, part)) ? "#111" : "#fff"));
    this.css = Object.fromEntries(Object.entries(this.rgb).map(([name, rgb]) => [name, `rgb(${rgb})`]));
    this.css.categories = base.map((rgb) => `rgb(${rgb})`);
    this.pixel = (name) => packed(this.rgb[name]);
    this.band = packed(mix(this.rgb.surface, this.rgb.paper, 0.35));
  }
}

const mix = (color, other, part) => color.map((value, i) => Math.round(value * (1 - part) + other[i] * part));
const packed = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
const isLight = ([red, green, blue]) => red * 0.299 + green * 0.587 + blue * 0.114 > 140;
const shadeOf = (name) => (Math.imul(name + 1, 2654435761) >>> 8) % SHADES.length;
