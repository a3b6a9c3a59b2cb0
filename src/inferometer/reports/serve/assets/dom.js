// Elements out of plain values. Text from files is only ever text.

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list" && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** What a screen reader hears. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "μs"], [1, "ns"]];

export function duration(ns) {
  if (ns === null || ns === undefined) return "";
  if (ns >= 120e9) return `${Math.floor(ns / 60e9)} min ${Math.round((ns % 60e9) / 1e9)} s`;
  const [size, unit] = UNITS.find(([least]) => ns >= least) ?? UNITS.at(-1);
  return `${(ns / size).toLocaleString("en", { maximumFractionDigits: 3, minimumFractionDigits: size > 1 ? 3 : 0 })} ${unit}`;
}

export function bytes(size) {
  const [least, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([each]) => size >= each) ?? [1, "B"];
  return `${(size / least).toFixed(least > 1 ? 1 : 0)} ${unit}`;
}

export function share(part) {
  return part === null || part === undefined ? "" : `${(100 * part).toFixed(1)} %`;
}

export function date(text) {
  return text ? text.slice(0, 16).replace("T", " ") : "";
}
