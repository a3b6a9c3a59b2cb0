// Files that are dropped anywhere on the page, or chosen: sent one after the other.

import * as api from "./api.js";
import { el, say } from "./dom.js";
import { problem } from "./jobs.js";

let mayWrite = () => false;

async function send(files) {
  const place = document.getElementById("jobs");
  for (const file of files) {
    const line = el("div", { class: "job" }, el("span", { class: "what" }, `Sending ${file.name}`), el("progress", { "aria-label": `Sending ${file.name}` }));
    place.append(line);
    try {
      if (!mayWrite()) throw new Error("Nothing is kept here: start the server with --keep FOLDER.");
      const kept = await api.upload(file);
      say(`Kept as ${kept.name}.`);
      if (kept.id) location.hash = `#/run/${kept.id}`;
      line.remove();
    } catch (error) {
      line.replaceChildren(problem(error), el("button", { type: "button", onclick: () => line.remove() }, "Close"));
    }
  }
}

function refuse(error) {
  const line = el("div", { class: "job" }, problem(error), el("button", { type: "button", onclick: () => line.remove() }, "Close"));
  document.getElementById("jobs").append(line);
}

export function addButton() {
  const input = el("input", { type: "file", multiple: true, hidden: true, onchange: () => send([...input.files]).then(() => { input.value = ""; }) });
  return el("span", {}, el("button", { type: "button", id: "add", onclick: () => input.click() }, "Add a file …"), input);
}

export function listenForDrops(may) {
  mayWrite = may;
  const cover = document.getElementById("drop");
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth += 1;
    cover.firstElementChild.textContent = mayWrite() ? "Drop it to keep it and read it" : "Nothing is kept here: start the server with --keep FOLDER";
    cover.hidden = false;
  });
  addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); cover.hidden = depth === 0; });
  addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    cover.hidden = true;
    const folders = [...event.dataTransfer.items].filter((item) => item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile().name);
    send([...event.dataTransfer.files].filter((file) => !folders.includes(file.name)));
    folders.forEach((name) => refuse(new Error(`${name}: is a folder. Start the server on it: inferometer serve FOLDER`)));
  });
}
