// Taking things along: a table's rows as CSV, a name to the clipboard.

const CSV_UNITS = { ns: " (ns)", share: " (%)", bytes: " (bytes)" };
// What a spreadsheet takes for a formula gets a quote in front, as in the files that the commands write.
const FORMULA = /^(?:['\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n])/;

function csvCell(cell, kind) {
  if (!NUMBERS.has(kind)) {
    const text = textOf(cell);
    return text === "-" ? "" : FORMULA.test(text) ? `'${text}` : text;
  }
  const value = numberOf(cell);
  if (Number.isNaN(value)) return "";
  return String(kind === "share" ? Number((value * 100).toPrecision(15)) : value);
}

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// The rows that are found, in their order, with exact numbers and whole names; shares in percent.
function csvOf(grid) {
  const heads = grid.titles.map((title, column) => title + (CSV_UNITS[grid.kinds[column]] || ""));
  const rows = grid.found.map((row) => [...row.cells].map((cell, column) => csvCell(cell, grid.kinds[column])));
  return [heads, ...rows].map((row) => `${row.map(quoted).join(",")}\n`).join("");
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: url, download: name.replace(/[^\w .,-]+/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Pages from a disk have no clipboard of their own in every browser: then a selection is copied.
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { value: text, className: "unseen" });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
