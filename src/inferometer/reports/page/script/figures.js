// Every figure of the page: flame graphs, or a chart with axes.

const charts = [];
const flames = [];

for (const plot of all(".plot")) {
  const { data } = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
  const trees = data.filter((trace) => trace.type === "icicle");
  if (!trees.length) {
    charts.push(new Chart(plot));
    continue;
  }
  const keys = data.filter((trace) => trace.type !== "icicle");
  const spans = trees.map(({ domain }) => (domain ? domain.x[1] - domain.x[0] : 1));
  const widest = Math.max(...spans);
  plot.replaceChildren();
  plot.setAttribute("role", "group");
  // Several stand below each other, on one scale.
  trees.forEach((tree, n) => flames.push(new Flame(plot, withOneRoot(tree), n ? [] : keys, spans[n] / widest)));
}
