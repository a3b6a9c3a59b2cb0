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
  }

  show(every = false) {
    this.panels.forEach((panel, index) => { panel.hidden = !every && index !== this.chosen; });
  }

  reveal(panel) {
    this.choose(this.panels.indexOf(panel));
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
