// Print: charts as wide as paper, light, nothing folded away.

const PRINTED = 680; // CSS pixels between the margins of A4
let unprinted = null;

function toPaper() {
  if (unprinted) return;
  const folded = [...all(".points details:not([open]), .unfolds:not([open])")];
  const groups = grids.flatMap((grid) => grid.groups.filter((group) => !group.open));
  unprinted = { folded, groups };
  tabs.forEach((each) => each.show(true));
  folded.forEach((details) => { details.open = true; });
  groups.forEach((group) => { group.open = true; });
  if (groups.length) grids.forEach((grid) => grid.show());
  root.classList.add("printing");
  grids.forEach((grid) => grid.fitting.fit());
  charts.forEach((chart) => chart.redraw(PRINTED));
}

function fromPaper() {
  if (!unprinted) return;
  unprinted.folded.forEach((details) => { details.open = false; });
  unprinted.groups.forEach((group) => { group.open = false; });
  grids.forEach((grid) => grid.show());
  unprinted = null;
  tabs.forEach((each) => each.show());
  root.classList.remove("printing");
  grids.forEach((grid) => grid.fitting.fit());
  charts.forEach((chart) => chart.redraw());
}

addEventListener("beforeprint", toPaper);
addEventListener("afterprint", fromPaper);
