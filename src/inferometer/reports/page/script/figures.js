// Every figure of the page: a flame graph, or a chart with axes.

const charts = [];
const flames = [];

for (const plot of all(".plot")) {
  const { data } = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
  const tree = data.find((trace) => trace.type === "icicle");
  if (tree) flames.push(new Flame(plot, tree, data.filter((trace) => trace !== tree)));
  else charts.push(new Chart(plot));
}
