// Deep links: `#kernels?filter=gemm&sort=-Total+Time` arranges a table of a section, `&table=2` its second one,
// `#call_tree?search=mm` searches a flame graph. What is arranged stands in the address, to be sent to somebody.
// Other parts hear of theirs by the event `link` at their section.

function tablesOf(section) {
  return grids.filter((grid) => section.contains(grid.element));
}

function arrange(grid, wanted) {
  if (wanted.has("sort")) {
    const [, minus, title] = /^(-?)(.*)$/s.exec(wanted.get("sort"));
    const column = grid.titles.indexOf(title);
    if (column >= 0) grid.sortBy({ column, sign: minus ? -1 : 1 });
  }
  if (wanted.has("filter")) {
    grid.field.value = wanted.get("filter");
    grid.filter(grid.field.value);
  }
}

function unfoldAround(element) {
  for (let at = element; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
    tabs.find((each) => each.panels.includes(at))?.reveal(at);
  }
}

function follow() {
  const [, id, query] = /^#([^?]*)(?:\?(.*))?$/s.exec(location.hash) || [];
  const section = id && document.getElementById(id);
  if (!section) return;
  unfoldAround(section);
  if (query === undefined) return;
  const wanted = new URLSearchParams(query);
  const grid = tablesOf(section)[Number(wanted.get("table") || 1) - 1];
  if (grid) {
    unfoldAround(grid.element);
    arrange(grid, wanted);
  }
  if (wanted.has("search")) flames.find((flame) => section.contains(flame.plot))?.searchFor(wanted.get("search"));
  section.dispatchEvent(new CustomEvent("link", { detail: wanted }));
  (wanted.has("filter") || wanted.has("sort") ? grid?.element ?? section : section).scrollIntoView();
}

document.addEventListener("arranged", ({ detail: grid }) => {
  const section = grid.element.closest("section");
  const place = tablesOf(section).indexOf(grid) + 1;
  const wanted = new URLSearchParams();
  if (place > 1) wanted.set("table", place);
  if (grid.words.length) wanted.set("filter", grid.field.value);
  if (grid.order) wanted.set("sort", `${grid.order.sign < 0 ? "-" : ""}${grid.titles[grid.order.column]}`);
  const isPlain = !grid.words.length && !grid.order;
  try {
    history.replaceState(null, "", `#${section.id}${isPlain ? "" : `?${wanted}`}`);
  } catch { /* a frame without an address of its own */ }
});

addEventListener("hashchange", follow);
follow();
