// Keys, wheel, mouse and fingers.

const STEP = 0.15; // of the window that a key moves
const CLOSER = 1.25;
const STILL = 4; // CSS pixels that a click may move

const KEYS = {
  w: (viewer) => viewer.zoom(CLOSER),
  s: (viewer) => viewer.zoom(1 / CLOSER),
  a: (viewer) => viewer.pan(-STEP),
  d: (viewer) => viewer.pan(STEP),
  arrowleft: (viewer) => viewer.pan(-STEP),
  arrowright: (viewer) => viewer.pan(STEP),
  "+": (viewer) => viewer.zoom(CLOSER),
  "=": (viewer) => viewer.zoom(CLOSER),
  "-": (viewer) => viewer.zoom(1 / CLOSER),
  f: (viewer) => viewer.fit(),
  home: (viewer) => viewer.showAll(),
  0: (viewer) => viewer.showAll(),
  m: (viewer) => viewer.selectView(),
  "/": (viewer) => viewer.search.field.focus(),
  n: (viewer) => viewer.search.step(1),
  p: (viewer) => viewer.search.step(-1),
  ".": (viewer) => viewer.neighbour(1),
  ",": (viewer) => viewer.neighbour(-1),
  enter: (viewer) => viewer.follow(),
  escape: (viewer) => viewer.clear(),
};

class Input {
  constructor(viewer) {
    this.viewer = viewer;
    this.pointers = new Map();
    this.drag = null;
    const { root, body, lanes, head } = viewer.parts;
    root.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => {
      if (document.activeElement === document.body && root.matches(":hover")) this.key(event);
    });
    body.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    head.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    for (const canvas of [lanes, head]) {
      canvas.addEventListener("pointerdown", (event) => this.down(event, canvas));
      canvas.addEventListener("pointermove", (event) => this.move(event, canvas));
      canvas.addEventListener("pointerup", (event) => this.up(event, canvas));
      canvas.addEventListener("pointercancel", () => this.stop());
      canvas.addEventListener("pointerleave", () => viewer.hover(null));
    }
    lanes.addEventListener("dblclick", (event) => viewer.zoom(3, this.x(event)));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    if (key === "enter" && event.target.matches("button, a, summary")) return;
    if (!Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    KEYS[key](this.viewer);
  }

  x(event) { return event.clientX - this.viewer.parts.lanes.getBoundingClientRect().left; }

  wheel(event) {
    const { viewer } = this;
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      viewer.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY * unit)) * 0.01), this.x(event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      viewer.pan((event.deltaX || event.deltaY) * unit / viewer.width);
    }
  }

  down(event, canvas) {
    if (event.button) return;
    const { viewer } = this;
    const { head } = viewer.parts;
    canvas.setPointerCapture(event.pointerId);
    viewer.focus();
    this.pointers.set(event.pointerId, { x: this.x(event), y: event.clientY });
    if (this.pointers.size === 2) {
      this.drag = { kind: "pinch" };
      return;
    }
    const x = this.x(event);
    const inHead = canvas === head;
    const y = event.clientY - canvas.getBoundingClientRect().top;
    const kind = inHead && y < OVERVIEW ? "overview" : inHead || event.shiftKey ? "range" : "pan";
    this.drag = { kind, x, y: event.clientY, from: viewer.ns(x), moved: false, top: viewer.parts.body.scrollTop };
    if (kind === "overview") viewer.centre((x / viewer.width) * viewer.view.length);
  }

  move(event, canvas) {
    const { viewer, drag } = this;
    const x = this.x(event);
    if (!drag) {
      viewer.hover({ x, y: event.clientY, canvas, clientX: event.clientX });
      return;
    }
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    if (drag.kind === "pinch") this.pinch(event, x);
    else if (Math.abs(x - drag.x) > STILL || Math.abs(event.clientY - drag.y) > STILL) drag.moved = true;
    if (drag.moved && drag.kind === "pan") {
      viewer.pan((before.x - x) / viewer.width);
      if (event.pointerType === "mouse") viewer.parts.body.scrollTop = drag.top + drag.y - event.clientY;
    } else if (drag.moved && drag.kind === "range") {
      viewer.select(drag.from, viewer.ns(x), { isOpen: true });
    } else if (drag.kind === "overview") {
      viewer.centre((x / viewer.width) * viewer.view.length);
    }
    this.pointers.set(event.pointerId, { x, y: event.clientY });
  }

  pinch(event, x) {
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
    const before = this.pointers.get(event.pointerId);
    if (!others.length) return;
    const [other] = others;
    const was = Math.max(10, Math.abs(before.x - other.x));
    const is = Math.max(10, Math.abs(x - other.x));
    this.viewer.pan((before.x - x) / 2 / this.viewer.width);
    this.viewer.zoom(is / was, (x + other.x) / 2);
  }

  up(event, canvas) {
    const { viewer, drag } = this;
    this.pointers.delete(event.pointerId);
    if (!drag || drag.kind === "pinch") {
      if (!this.pointers.size) this.drag = null;
      return;
    }
    this.drag = null;
    const x = this.x(event);
    if (drag.kind === "range" && drag.moved) viewer.select(drag.from, viewer.ns(x));
    else if (!drag.moved && drag.kind !== "overview") viewer.click(x, event.clientY, canvas);
  }

  stop() {
    this.pointers.clear();
    this.drag = null;
  }
}
