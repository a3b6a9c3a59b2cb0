// What all parts share: elements, the theme, numbers and cells as people write them.

const root = document.documentElement;
root.classList.add("js");

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const isShown = (element) => element.getClientRects().length > 0;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Theme: the one that the page came with, else the system's, until the button says otherwise. Colours are variables of
// the style: nothing is drawn anew.

const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");

function showTheme(chosen) {
  root.dataset.theme = chosen || (system.matches ? "dark" : "light");
  theme.textContent = root.dataset.theme === "dark" ? "Light theme" : "Dark theme";
}

let chosenTheme = root.dataset.theme || "";
theme.hidden = false;
theme.onclick = () => {
  chosenTheme = root.dataset.theme === "dark" ? "light" : "dark";
  showTheme(chosenTheme);
};
system.addEventListener("change", () => showTheme(chosenTheme));
showTheme(chosenTheme);

// Numbers, as Python's reports write them.

const UNITS = { ns: ["ns", "μs", "ms", "s"], bytes: ["B", "kB", "MB", "GB", "TB", "PB"] };
const grouped = (text) => text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+(?!\d))/g, ","));

function formatted(kind, value) {
  if (kind === "share") return `${(value * 100).toFixed(1)} %`;
  if (kind === "ratio") {
    return Math.abs(value) >= 1000 ? grouped(value.toFixed(0)) : String(Number(value.toPrecision(4)));
  }
  const units = UNITS[kind];
  if (!units || Math.abs(value) < 1000) {
    const text = Number.isInteger(value) ? grouped(String(value)) : String(value);
    return units ? `${text} ${units[0]}` : text;
  }
  let power = 0;
  let rest = value;
  while (Math.abs(rest) >= 999.9995 && power < units.length - 1) {
    rest /= 1000;
    power += 1;
  }
  return `${grouped(rest.toFixed(3))} ${units[power]}`;
}

// Text that has to fit: its middle goes, since what tells names apart often stands at their end.

const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily; // asked for once: each time, the style is made up to date

function widthOf(text, size = 12) {
  const font = `${size}px ${family}`;
  if (font !== pen.written) pen.font = pen.written = font;
  return pen.measureText(text).width;
}

function fitting(text, room, size = 12) {
  if (widthOf(text, size) <= room) return text;
  let low = 0;
  let high = text.length - 1;
  const cut = (kept) => `${text.slice(0, kept - Math.floor(kept / 3))}…${kept > 2 ? text.slice(-Math.floor(kept / 3)) : ""}`;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(cut(middle), size) <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? cut(low) : "";
}
