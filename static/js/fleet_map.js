// A dense map comes with a link per node, to stay small; here each of its GPUs becomes a link of its own.
const SVG = "http://www.w3.org/2000/svg";

function made(name, attributes, ...inner) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inner);
  return element;
}

function linked(node, place, i) {
  const [index, summary] = place.split(":");
  const x = String(29 * i - 1);
  const mark = node.querySelector(`.gpu-outline[x="${x}"]`);
  const href = node.getAttribute("href").replace("/nodes/", "/gpus/").replace(/\/$/, `.${index}/`);
  const words = `${node.getAttribute("aria-label")} ${node.dataset.device || "GPU"} ${index}: ${summary.replace("/", " of ").replace(/^\d+ of \d+/, "$& sold")}`;
  const gpu = made("a", { href, tabindex: -1, "aria-label": words }, made("rect", { class: "gpu-outline", x, y: -1, width: 28, height: 13 }));
  if (mark?.classList.contains("selected")) gpu.setAttribute("aria-current", "true");
  gpu.classList.toggle("unhealthy", summary.includes("unhealthy"));
  return gpu;
}

function unfold() {
  for (const map of document.querySelectorAll(".fleet.fleet-map:has(a[data-gpus])")) {
    for (const node of map.querySelectorAll("a[data-gpus]")) {
      const gpus = node.dataset.gpus.split(";").map((place, i) => linked(node, place, i));
      node.replaceWith(made("g", { transform: node.getAttribute("transform") }, ...node.querySelectorAll("text, path"), ...gpus));
    }
    map.querySelector("a")?.setAttribute("tabindex", "0");
  }
}
unfold();
document.addEventListener("htmx:afterSwap", unfold);

// Fleet map: one tab stop; arrows walk GPUs, Home and End the node, Enter opens. Geometry decides neighbours.
document.addEventListener("keydown", (event) => {
  const here = event.target.closest?.(".fleet a");
  if (!here) return;
  const gpus = [...here.closest(".fleet").querySelectorAll("a")];
  const box = (gpu) => gpu.getBoundingClientRect();
  const at = box(here);
  const row = [...here.closest("g").querySelectorAll("a")];
  const nearest = (list) => list.sort((a, b) => Math.hypot(box(a).x - at.x, (box(a).y - at.y) * 9) - Math.hypot(box(b).x - at.x, (box(b).y - at.y) * 9))[0];
  const to = {
    ArrowRight: () => row[row.indexOf(here) + 1], ArrowLeft: () => row[row.indexOf(here) - 1],
    ArrowDown: () => nearest(gpus.filter((c) => box(c).y > at.y + 2)), ArrowUp: () => nearest(gpus.filter((c) => box(c).y < at.y - 2)),
    Home: () => row[0], End: () => row[row.length - 1],
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  here.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
});
