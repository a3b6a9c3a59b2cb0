// Pointing at a chart, or stepping through it with the arrow keys: the nearest spot says its numbers.

const NEAR = 48; // pixels

class Hover {
  constructor(plot, svg, spots) {
    Object.assign(this, { plot, svg, spots });
    this.at = -1;
    this.tip = make("output", { className: "tip", hidden: true });
    this.ring = draw("circle", { r: 5, class: "ring", visibility: "hidden" });
    svg.append(this.ring);
    plot.append(this.tip);
    svg.addEventListener("pointermove", (event) => this.point(event));
    svg.addEventListener("pointerleave", () => this.hide());
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    this.show(this.nearest(event.clientX - box.left, event.clientY - box.top));
  }

  nearest(x, y) {
    let found = -1;
    let least = NEAR;
    this.spots.forEach((spot, index) => {
      if (spot.box) {
        const [left, top, width, height] = spot.box;
        const outside = Math.max(left - x, x - left - width, 0) + Math.max(top - y, y - top - height, 0);
        if (outside < 4 && outside - 8 < least) [found, least] = [index, outside - 8];
        return;
      }
      const distance = Math.hypot(spot.x - x, (spot.y - y) * 0.7);
      if (distance < least) [found, least] = [index, distance];
    });
    return found;
  }

  show(index) {
    if (index < 0) return this.hide();
    if (index === this.at && !this.tip.hidden) return undefined;
    this.at = index;
    const { x, y, said, box } = this.spots[index];
    this.tip.hidden = false;
    this.tip.textContent = said;
    const width = this.plot.clientWidth;
    const left = Math.min(Math.max(0, x + 12), width - this.tip.offsetWidth);
    const top = y - this.tip.offsetHeight - 10;
    this.tip.style.transform = `translate(${left}px, ${this.svg.parentNode.offsetTop + (top < -40 ? y + 14 : top)}px)`;
    const ring = { cx: x, cy: y, visibility: box ? "hidden" : "visible" };
    Object.entries(ring).forEach(([name, value]) => this.ring.setAttribute(name, value));
    return undefined;
  }

  hide() {
    this.tip.hidden = true;
    this.ring.setAttribute("visibility", "hidden");
  }

  press(key) {
    const last = this.spots.length - 1;
    const to = { ArrowRight: this.at + 1, ArrowDown: this.at + 1, ArrowLeft: this.at - 1, ArrowUp: this.at - 1, Home: 0, End: last }[key];
    if (to === undefined || last < 0) return false;
    this.show(Math.min(last, Math.max(0, to)));
    return true;
  }
}
