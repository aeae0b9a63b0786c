// The event process tells that something changed; the page then asks for its own parts again. Without it, they ask
// by themselves, less often. A page nobody looks at hangs up.
const address = document.querySelector("meta[name=events]")?.content;
const TYPES = ["requested", "queued", "provisioning", "active", "stopping", "stopped", "releasing", "released", "failed"];
let stream = null, soon = 0;

function nudge() {
  clearTimeout(soon);
  soon = setTimeout(() => window.htmx?.trigger(document.body, "nudge"), 250);
}

function listen() {
  if (!address || stream || document.hidden) return;
  stream = new EventSource(address, { withCredentials: true });
  for (const type of TYPES) stream.addEventListener(`lease.${type}`, nudge);
  // What happened after the page was drawn and before anybody listened is told to nobody: ask once.
  stream.addEventListener("open", nudge, { once: true });
  stream.addEventListener("end", hangUp);
  stream.addEventListener("error", () => { if (stream?.readyState === EventSource.CLOSED) hangUp(); });
}

function hangUp() {
  stream?.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return hangUp();
  listen();
  nudge();
});
addEventListener("pagehide", hangUp);
listen();
