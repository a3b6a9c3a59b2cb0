// Every time line that is packed in the page, and addresses that lead into them: #NAME?at=FROM-TO, in ns from the
// origin. NAME is that of the time line, or of the section whose first one it is.

const ADDRESS = /^#([\w-]+)\?at=(\d{1,16})(?:-(\d{1,16}))?$/;
const mounted = new Map();

async function mount(holder) {
  const data = document.getElementById(holder.dataset.packed);
  const source = new EmbeddedSource(await unpack(fromBase64(data.textContent.trim())));
  data.remove();
  const viewer = new Viewer(holder, source);
  holder.viewer = viewer; // for who looks at it from outside
  mounted.set(holder.id, viewer);
  const section = holder.closest("section");
  if (section?.querySelector(".time-line") === holder) mounted.set(section.id, viewer);
  return viewer;
}

function visit() {
  const match = ADDRESS.exec(location.hash);
  const viewer = match && mounted.get(match[1]);
  if (!viewer) return;
  const panel = viewer.parts.root.closest(".panel[hidden]");
  if (panel) document.getElementById(`${panel.id}-tab`)?.click();
  const [start, end] = [Number(match[2]), Number(match[3] || match[2])];
  const mark = viewer.marks.find((each) => each.start === start && each.end === end);
  if (mark) viewer.showMark(mark);
  else {
    viewer.view.showAround(start, end);
    if (end > start) viewer.select(start, end);
    viewer.redraw();
  }
  viewer.parts.root.scrollIntoView({ block: "start" });
}

const holders = [...document.querySelectorAll(".time-line[data-packed]")];
Promise.all(holders.map(mount)).then(visit);
addEventListener("hashchange", visit);
// A second click on the same link changes no address.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href*="?at="]');
  if (link && link.hash === location.hash) visit();
});
