// The control room: pointing at a GPU describes it in the panel beside it, and a new map keeps what was pointed at.
const DWELL_MS = 140;
let shown = document.querySelector(".fleet a[aria-current]")?.getAttribute("href") ?? "";
let dwelling = 0;
let focused = "";

function mark() {
  for (const gpu of document.querySelectorAll(".fleet a")) {
    if (gpu.getAttribute("href") === shown) gpu.setAttribute("aria-current", "true");
    else gpu.removeAttribute("aria-current");
  }
}

function describe(gpu) {
  const href = gpu.getAttribute("href");
  clearTimeout(dwelling);
  if (href === shown) return;
  dwelling = setTimeout(() => {
    shown = href;
    mark();
    htmx.ajax("GET", `${href}panel/`, { target: "#gpu-panel", swap: "innerHTML" });
  }, DWELL_MS);
}

for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const gpu = event.target.closest?.(".fleet.fleet-map a");
    if (gpu) describe(gpu);
  });
}
document.addEventListener("pointerout", (event) => {
  if (event.target.closest?.(".fleet.fleet-map a")) clearTimeout(dwelling);
});

// 304: the map is as it was, so what stands here stays.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status === 304) event.detail.shouldSwap = false;
  focused = document.activeElement?.closest?.(".fleet.fleet-map a")?.getAttribute("href") ?? "";
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "map") return;
  mark();
  const gpu = focused && document.querySelector(`.fleet.fleet-map a[href="${CSS.escape(focused)}"]`);
  if (!gpu) return;
  document.querySelector('.fleet.fleet-map a[tabindex="0"]')?.setAttribute("tabindex", "-1");
  gpu.setAttribute("tabindex", "0");
  gpu.focus();
});
