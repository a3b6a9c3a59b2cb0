"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const isShown = (element) => element.getClientRects().length > 0;

  // Theme: the one that the page came with, else the system's, until the button says otherwise.

  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  let chosen = root.dataset.theme || "";

  function showTheme(theme = chosen || (system.matches ? "dark" : "light")) {
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    all(".js-plotly-plot").filter(isShown).forEach(draw); // others when their tab is chosen
  }

  // Charts: drawn as they come into view, in the colours of the page.

  const COLOR = /colou?rs?$|colorscale$|colorway$/i;
  const SHORT = 16; // characters of a name at an axis on a phone
  const VARIABLE = /^var\((--[a-z0-9-]+)\)$/;
  const touch = matchMedia("(pointer: coarse), (max-width: 40rem)");
  const config = () => ({
    responsive: true,
    displaylogo: false,
    displayModeBar: touch.matches ? false : "hover",
    showSendToCloud: false,
    showTips: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  });

  function colors() {
    const probe = make("i", { hidden: true });
    document.body.append(probe);
    const found = new Map();
    const color = (name) => {
      if (!found.has(name)) {
        probe.style.color = `var(${name})`;
        found.set(name, getComputedStyle(probe).color);
      }
      return found.get(name);
    };
    color.done = () => probe.remove();
    return color;
  }

  function colored(value, isColor, color) {
    if (typeof value === "string") {
      const match = isColor && VARIABLE.exec(value);
      return match ? color(match[1]) : value;
    }
    if (Array.isArray(value)) return value.map((each) => colored(each, isColor, color));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, colored(each, COLOR.test(key), color)]));
  }

  function template(color, isNarrow) {
    const axis = {
      gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--muted"), automargin: true,
      title: { standoff: 8, font: { color: color("--muted") } },
    };
    const scale = [[0, color("--surface")], [1, color("--series-1")]];
    const colorbar = { thickness: 12, outlinewidth: 0 };
    if (isNarrow) Object.assign(colorbar, { orientation: "h", y: 1.02, yanchor: "bottom" });
    return {
      data: { heatmap: [{ colorbar }] },
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color("--ink") },
        colorway: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => color(`--series-${number}`)),
        colorscale: { sequential: scale },
        hoverlabel: {
          bgcolor: color("--paper"), bordercolor: color("--muted"), font: { color: color("--ink") }, align: "left",
        },
        legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
        margin: { l: 8, r: 20, t: 12, b: 8 },
        modebar: { bgcolor: color("--paper"), color: color("--muted"), activecolor: color("--ink") },
        xaxis: axis,
        yaxis: axis,
      },
    };
  }

  function draw(plot) {
    const color = colors();
    const figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
    const layout = colored(figure.layout, false, color);
    const menus = layout.updatemenus || [];
    delete layout.updatemenus;
    const isNarrow = plot.clientWidth < 480;
    layout.template = template(color, isNarrow);
    if (isNarrow) shortenTicks(figure.data, layout);
    layout.height = parseFloat(plot.style.getPropertyValue("--height"));
    layout.uirevision = "kept";
    if (root.classList.contains("printing")) layout.width = PRINTED;
    if (touch.matches && layout.dragmode === undefined) layout.dragmode = false; // a finger scrolls the page
    const data = colored(figure.data, false, color);
    color.done();
    Plotly.react(plot, data, layout, config());
    menus.forEach((menu, index) => choice(plot, menu, index));
  }

  const fit = (plot) => requestAnimationFrame(() => { if (isShown(plot)) Plotly.Plots.resize(plot); });

  // On a phone, names next to an axis would leave no room for the chart; the hover has them in full.
  function shortenTicks(data, layout) {
    const names = new Set(data.flatMap((trace) => (trace.yaxis ? [] : trace.y || [])).filter((y) => typeof y === "string"));
    if (![...names].some((name) => name.length > SHORT)) return;
    const plain = (name) => name.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
    const safe = (name) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const middle = (name) => `${name.slice(0, SHORT / 2)}…${name.slice(1 - SHORT / 2)}`;
    const short = (name) => (plain(name).length > SHORT ? safe(middle(plain(name))) : name);
    const ticks = { tickmode: "array", tickvals: [...names], ticktext: [...names].map(short) };
    layout.yaxis = { ...layout.yaxis, ...ticks };
  }

  function choice(plot, menu, index) {
    const id = `${plot.dataset.figure}-menu-${index}`;
    let select = document.getElementById(id);
    const choose = () => {
      const button = menu.buttons[select.selectedIndex];
      if (["restyle", "relayout", "update"].includes(button.method)) Plotly[button.method](plot, ...button.args);
    };
    if (select) {
      if (select.selectedIndex !== (menu.active || 0)) choose();
    } else {
      select = make("select", { id });
      select.append(...menu.buttons.map((button) => make("option", { textContent: button.label })));
      select.selectedIndex = menu.active || 0;
      plot.before(make("label", { className: "choose" }, make("span", { textContent: "Show" }), select));
      select.setAttribute("aria-label", `What the chart shows: ${plot.dataset.title}`);
    }
    select.onchange = choose;
  }

  const plots = window.Plotly ? all(".plot") : [];
  const waiting = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || !isShown(entry.target)) continue; // its tab may have gone since
      waiting.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  plots.forEach((plot) => waiting.observe(plot));

  // Tables: sorted, filtered, folded. The rows stay as they were written; only their order and visibility change.

  const NUMBERS = new Set(["count", "ns", "share", "bytes", "ratio", "number"]);
  const UNITS = { ns: ["ns", "μs", "ms", "s"], bytes: ["B", "kB", "MB", "GB", "TB", "PB"] };
  const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

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
    const [whole, part] = rest.toFixed(3).split(".");
    return `${grouped(whole)}.${part} ${units[power]}`;
  }

  const textOf = (cell) => (cell.querySelector(".long code, .label") || cell).textContent;
  const numberOf = (cell) => Number((cell.dataset.value ?? cell.textContent).replaceAll(",", "").replace(/^$/, "-"));

  class Grid {
    constructor(element) {
      this.element = element;
      this.table = element.querySelector("table");
      this.body = this.table.tBodies[0];
      this.heads = [...this.table.tHead.rows[0].cells];
      this.kinds = this.heads.map((head) => head.dataset.kind);
      this.summed = this.heads.map((head, column) => ("summed" in head.dataset ? column : -1)).filter((n) => n >= 0);
      this.rows = all("tr.row", this.body);
      this.rest = all("tr.rest", this.body);
      this.groups = all("tr.group", this.body).map((head) => ({
        head,
        rows: this.rows.filter((row) => row.dataset.group === head.dataset.group),
        rest: this.rest.filter((row) => row.dataset.group === head.dataset.group),
        open: !("folded" in element.dataset),
      }));
      this.order = null;
      this.words = [];
      this.isGrouped = this.groups.length > 0;
      this.found = this.rows;
      this.tools();
      this.sorters();
      this.groups.forEach((group) => this.toggle(group));
      this.show();
    }

    tools() {
      this.status = make("output");
      const name = this.table.caption.textContent;
      const filter = make("input", { type: "search", placeholder: "Filter", autocomplete: "off", spellcheck: false });
      filter.setAttribute("aria-label", `Filter ${name}`);
      filter.oninput = () => this.filter(filter.value);
      const tools = make("div", { className: "tools" });
      if (this.rows.length > 5) tools.append(filter);
      if (this.groups.length) {
        this.folder = make("button", { type: "button", className: "fold" });
        this.folder.onclick = () => {
          const open = this.groups.some((group) => !group.open);
          this.groups.forEach((group) => { group.open = open; });
          this.show();
        };
        const by = make("button", { type: "button", className: "by", textContent: `By ${this.element.dataset.group}` });
        by.setAttribute("aria-pressed", "true");
        by.onclick = () => {
          this.isGrouped = !this.isGrouped;
          by.setAttribute("aria-pressed", String(this.isGrouped));
          this.show();
        };
        tools.append(by, this.folder);
      }
      tools.append(this.status);
      if (tools.children.length > 1) this.element.prepend(tools);
    }

    sorters() {
      this.heads.forEach((head, column) => {
        const sorter = make("button", { type: "button", textContent: head.textContent });
        sorter.onclick = () => this.sort(column);
        head.replaceChildren(sorter);
        head.setAttribute("aria-sort", "none");
      });
    }

    toggle(group) {
      const label = group.head.cells[0].querySelector(".label");
      group.toggle = make("button", { type: "button", className: "toggle" });
      group.toggle.setAttribute("aria-label", `Rows of ${label.textContent}`);
      group.toggle.onclick = () => {
        group.open = !group.open;
        this.show();
      };
      label.before(group.toggle);
      group.count = group.head.cells[0].querySelector(".rows");
      group.own = [...group.head.cells].map((cell) => cell.textContent);
      group.of = group.count.textContent;
    }

    sort(column) {
      const first = NUMBERS.has(this.kinds[column]) ? -1 : 1;
      const before = this.order && this.order.column === column ? this.order.sign : 0;
      this.order = before === -first ? null : { column, sign: before === first ? -first : first };
      this.heads.forEach((head, each) => {
        const sign = this.order && each === column ? this.order.sign : 0;
        head.setAttribute("aria-sort", sign ? (sign > 0 ? "ascending" : "descending") : "none");
      });
      this.show();
    }

    filter(text) {
      this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
      this.show();
    }

    compare(column, sign) {
      if (!NUMBERS.has(this.kinds[column])) {
        return (a, b) => sign * textOf(a.cells[column]).localeCompare(textOf(b.cells[column]), "en");
      }
      return (a, b) => {
        const [x, y] = [numberOf(a.cells[column]), numberOf(b.cells[column])];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return sign * (x - y);
      };
    }

    matches(row) {
      const text = [...row.cells].map(textOf).join(" ").toLowerCase();
      return this.words.every((word) => text.includes(word));
    }

    show() {
      const filtered = this.words.length > 0;
      const found = new Set(filtered ? this.rows.filter((row) => this.matches(row)) : this.rows);
      const order = this.order && this.compare(this.order.column, this.order.sign);
      const sorted = (rows) => (order ? [...rows].sort(order) : rows);
      const lines = [];
      const put = (line, isShown) => {
        line.hidden = !isShown;
        lines.push(line);
      };
      if (this.isGrouped) {
        if (filtered) this.groups.forEach((group) => this.sumUp(group, group.rows.filter((row) => found.has(row))));
        else this.groups.forEach((group) => this.sumUp(group, null));
        for (const group of this.inOrder(order)) {
          const rows = group.rows.filter((row) => found.has(row));
          const open = group.open || filtered;
          put(group.head, !filtered || rows.length);
          group.toggle.setAttribute("aria-expanded", String(open));
          sorted(group.rows).forEach((row) => put(row, open && found.has(row)));
          group.rest.forEach((row) => put(row, open && !filtered));
        }
      } else {
        this.groups.forEach((group) => put(group.head, false));
        sorted(this.rows).forEach((row) => put(row, found.has(row)));
        this.groups.forEach((group) => group.rest.forEach((row) => put(row, !filtered)));
      }
      this.rest.filter((row) => !row.dataset.group).forEach((row) => put(row, !filtered));
      this.body.append(...lines);
      this.table.classList.toggle("grouped", this.isGrouped);
      if (this.folder) {
        this.folder.hidden = !this.isGrouped;
        this.folder.textContent = this.groups.some((group) => !group.open) ? "Unfold all" : "Fold all";
      }
      this.foot(filtered ? [...found] : null);
    }

    inOrder(order) {
      if (!order) return this.groups;
      const isSummed = this.summed.includes(this.order.column) || this.order.column === 0;
      const first = (group) => (isSummed ? group.head : [...group.rows].sort(order)[0] || group.head);
      return [...this.groups].sort((a, b) => order(first(a), first(b)));
    }

    sumUp(group, rows) {
      group.count.textContent = rows ? `${rows.length} of ${group.of}` : group.of;
      for (const column of this.summed.filter((each) => each > 0)) {
        group.head.cells[column].textContent = rows ? this.sum(rows, column) : group.own[column];
      }
    }

    sum(rows, column) {
      const total = rows.reduce((sum, row) => sum + numberOf(row.cells[column]), 0);
      return Number.isNaN(total) ? "" : formatted(this.kinds[column], total);
    }

    foot(found) {
      this.table.tFoot?.remove();
      if (!found) {
        this.status.textContent = "";
        return;
      }
      const unseen = this.rest.length ? "; rows that are not on the page are not searched" : "";
      this.status.textContent = `${found.length} of ${this.rows.length} rows${unseen}`;
      if (!this.summed.length || !found.length) return;
      const cells = this.heads.map((head, column) => make(column ? "td" : "th", {
        className: head.className,
        textContent: column === 0 ? "Sum of these rows" : this.summed.includes(column) ? this.sum(found, column) : "",
      }));
      this.table.append(make("tfoot", {}, make("tr", {}, ...cells)));
    }
  }

  const grids = all(".grid").map((element) => new Grid(element));

  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.("[data-value]");
    if (!cell || cell.title) return;
    const kind = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].dataset.kind;
    const value = cell.dataset.value;
    cell.title = kind === "ns" ? `${grouped(value.replace(/\.0$/, ""))} ns` : kind === "bytes" ? `${grouped(value)} B` : value;
  });

  // Tabs: one panel at a time; arrow keys go from tab to tab.

  class Tabs {
    constructor(element) {
      this.panels = all(":scope > .panel", element);
      const list = make("div", { className: "tab-list", role: "tablist" });
      list.setAttribute("aria-label", element.dataset.label);
      this.buttons = this.panels.map((panel, index) => {
        const title = panel.querySelector(".tab-title");
        const tab = make("button", { type: "button", id: `${panel.id}-tab`, textContent: title.textContent, role: "tab" });
        tab.setAttribute("aria-controls", panel.id);
        tab.onclick = () => this.choose(index);
        panel.setAttribute("role", "tabpanel");
        panel.setAttribute("aria-labelledby", tab.id);
        return tab;
      });
      list.onkeydown = (event) => this.press(event);
      list.append(...this.buttons);
      element.prepend(list);
      this.choose(0);
    }

    choose(chosen) {
      this.chosen = chosen;
      this.buttons.forEach((tab, index) => {
        tab.setAttribute("aria-selected", String(index === chosen));
        tab.tabIndex = index === chosen ? 0 : -1;
      });
      this.show();
      for (const plot of all(".plot", this.panels[chosen])) {
        if (plot.classList.contains("js-plotly-plot")) {
          draw(plot);
          fit(plot); // the window, or the paper, had another width when it was last seen
        } else if (plots.includes(plot)) { // asks again whether it is in view
          waiting.unobserve(plot);
          waiting.observe(plot);
        }
      }
    }

    show(every = false) {
      this.panels.forEach((panel, index) => { panel.hidden = !every && index !== this.chosen; });
    }

    press(event) {
      const last = this.buttons.length - 1;
      const next = {
        ArrowRight: this.chosen === last ? 0 : this.chosen + 1,
        ArrowLeft: this.chosen === 0 ? last : this.chosen - 1,
        Home: 0,
        End: last,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      this.choose(next);
      this.buttons[next].focus();
    }
  }

  const tabs = all(".tabs").map((element) => new Tabs(element));

  // What unfolds: each by itself, or all of a list together.

  for (const list of all(".folds")) {
    const folds = all(":scope > details", list);
    const button = make("button", { type: "button", className: "unfold" });
    const say = () => { button.textContent = folds.every((fold) => fold.open) ? "Fold all" : "Unfold all"; };
    button.onclick = () => {
      const open = !folds.every((fold) => fold.open);
      folds.forEach((fold) => { fold.open = open; });
    };
    folds.forEach((fold) => fold.addEventListener("toggle", say));
    say();
    list.prepend(make("div", { className: "tools" }, button));
  }

  // Contents: open next to the text, folded on a phone; the section in view is marked.

  const contents = document.querySelector("nav details");
  if (contents) {
    const wide = matchMedia("(min-width: 68rem)");
    const unfold = () => { contents.open = wide.matches; };
    wide.addEventListener("change", unfold);
    unfold();
    const links = new Map(all("a", contents).map((link) => [link.hash.slice(1), link]));
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(target.id)?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-20% 0px -70% 0px" });
    all("section[id]").forEach((section) => seen.observe(section));
  }

  // Print: everything drawn, light, as wide as paper, nothing folded away.

  const PRINTED = 680; // CSS pixels between the margins of A4
  let unprinted = null;

  function print() {
    if (unprinted) return;
    const folded = [...all(".points details:not([open]), .unfolds:not([open])")];
    const groups = grids.flatMap((grid) => grid.groups.filter((group) => !group.open));
    unprinted = { folded, groups };
    tabs.forEach((each) => each.show(true));
    folded.forEach((details) => { details.open = true; });
    groups.forEach((group) => { group.open = true; });
    if (groups.length) grids.forEach((grid) => grid.show());
    root.classList.add("printing");
    showTheme("light");
    plots.forEach((plot) => {
      waiting.unobserve(plot);
      draw(plot);
    });
  }

  function unprint() {
    if (!unprinted) return;
    unprinted.folded.forEach((details) => { details.open = false; });
    unprinted.groups.forEach((group) => { group.open = false; });
    grids.forEach((grid) => grid.show());
    unprinted = null;
    tabs.forEach((each) => each.show());
    root.classList.remove("printing");
    showTheme();
    plots.filter(isShown).forEach(draw);
    plots.forEach(fit);
  }

  addEventListener("beforeprint", print);
  addEventListener("afterprint", unprint);

  button.hidden = false;
  button.onclick = () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    showTheme();
  };
  system.addEventListener("change", () => showTheme());
  showTheme();
})();
