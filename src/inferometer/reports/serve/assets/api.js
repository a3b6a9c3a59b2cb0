// The server's answers. Addresses are relative: the token is in the page's own.

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server doesn't answer: it has ended, or the connection is lost.");
  }
  const kind = answer.headers.get("Content-Type") ?? "";
  if (answer.ok && kind.startsWith("application/octet-stream")) return new Uint8Array(await answer.arrayBuffer());
  const data = kind.startsWith("application/json") ? await answer.json() : null;
  if (!answer.ok) throw new Error(data?.error ?? `The server refused it (${answer.status}): reload with the address that it printed.`);
  return data;
}

const json = (method, data) => ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });

export const state = () => ask("api/state");
export const packed = (path) => ask(path);
export const tables = (kind) => ask(kind === "fleet" ? "api/tables?of=fleet" : "api/tables");
export const begin = (kind, given) => ask("api/jobs", json("POST", { kind, ...given }));
export const job = (id) => ask(`api/jobs/${id}`);
export const cancel = (id) => ask(`api/jobs/${id}`, { method: "DELETE" });
export const live = (id, since) => ask(`api/runs/${id}/live?since=${since}`);
export const setTags = (id, tags) => ask(`api/runs/${id}/tags`, json("PUT", tags));
export const upload = (file) => ask(`api/uploads?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

/** Calls `heard` with each event, and `again` when the stream was lost and is back. */
export function listen(heard, again) {
  let wasOpen = false;
  let stream = null;
  const open = () => {
    stream = new EventSource("api/events");
    stream.onmessage = (event) => heard(JSON.parse(event.data));
    stream.onopen = () => {
      if (wasOpen) again();
      wasOpen = true;
      document.body.classList.remove("alone");
    };
    stream.onerror = () => document.body.classList.add("alone");
  };
  // A browser has six connections to a server for all its tabs: one that isn't seen needs none.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stream.close();
    else open();
  });
  open();
}
