// Tags of one's own: a line to write them in, kept by the server.

import * as api from "./api.js";
import { el, say } from "./dom.js";

export function tagEditor(run) {
  const open = el("button", { type: "button", class: "tag add", "aria-label": `Change the tags of ${run.name}` }, "+");
  open.onclick = () => {
    const input = el("input", { type: "text", value: run.tags.join(", "), size: "14", "aria-label": `Tags of ${run.name}, with commas between` });
    const end = () => input.replaceWith(open);
    input.onkeydown = async (event) => {
      if (event.key === "Escape") end();
      if (event.key !== "Enter") return;
      try {
        await api.setTags(run.id, input.value.split(",").map((tag) => tag.trim()).filter(Boolean));
        say("Kept.");
        end();
      } catch (error) {
        input.setCustomValidity(error.message);
        input.reportValidity();
        input.setCustomValidity("");
      }
    };
    open.replaceWith(input);
    input.focus();
  };
  return open;
}
