// What a chart says of one point: its hover template filled in. Names stay text: a template is ours, values are not.

function inFormat(value, format) {
  if (typeof value !== "number") return String(value ?? "");
  if (format?.endsWith("%")) return `${(value * 100).toFixed(Number(format[1]) || 0)}%`;
  if (format?.endsWith("f")) return value.toFixed(Number(format[1]));
  const short = Number(value.toPrecision(format?.endsWith("g") ? Number(format[1]) || 6 : 9));
  return grouped(String(short));
}

const inside = (value, index) => (Array.isArray(value) ? value[index] : value);

function saidOf(trace, index, values) {
  const known = { ...values, text: inside(trace.text, index), customdata: inside(trace.customdata, index) };
  const template = trace.hovertemplate ?? "%{y}: %{x}";
  const filled = template.replace(/<extra>.*<\/extra>/, "").replace(/<\/?b>/g, "").split("<br>").map((line) =>
    line.replace(/%\{([a-zA-Z.]+)(?:\[(\d+)\])?(?::([^}]*))?\}/g, (whole, name, place, format) => {
      const value = name === "fullData.name" ? trace.name : known[name];
      return inFormat(place === undefined ? value : value?.[place], format);
    }));
  const isNamed = !template.includes("<extra></extra>") && trace.name && trace.showlegend !== false;
  return [...filled, ...(isNamed ? [trace.name] : [])].join("\n");
}
