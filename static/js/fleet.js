// Fleet map: one tab stop; arrows walk cards, Home and End the node, Enter opens. Geometry decides neighbours.
document.addEventListener("keydown", (event) => {
  const here = event.target.closest?.(".fleet a");
  if (!here) return;
  const cards = [...here.closest(".fleet").querySelectorAll("a")];
  const box = (card) => card.getBBox();
  const at = box(here);
  const row = [...here.closest("g").querySelectorAll("a")];
  const nearest = (list) => list.sort((a, b) => Math.hypot(box(a).x - at.x, (box(a).y - at.y) * 9) - Math.hypot(box(b).x - at.x, (box(b).y - at.y) * 9))[0];
  const to = {
    ArrowRight: () => row[row.indexOf(here) + 1], ArrowLeft: () => row[row.indexOf(here) - 1],
    ArrowDown: () => nearest(cards.filter((c) => box(c).y > at.y + 2)), ArrowUp: () => nearest(cards.filter((c) => box(c).y < at.y - 2)),
    Home: () => row[0], End: () => row[row.length - 1],
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  here.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
});
