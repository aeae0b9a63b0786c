// Keys: / searches, n launches, ? shows the keys, Ctrl+K opens every page by name. Never while someone types.
const help = document.getElementById("keys");
const palette = document.getElementById("palette");
const wanted = document.getElementById("palette-words");
const list = document.getElementById("palette-list");

addEventListener("keydown", (event) => {
  if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k" && palette) {
    event.preventDefault();
    return palette.open ? palette.close() : openPalette();
  }
  if (event.target.closest?.("input, textarea, select, [contenteditable], .xterm")) return;
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "?" && help) {
    event.preventDefault();
    return help.showModal();
  }
  const target = { "/": ".search-form input[type=search]", n: "[data-key=n]" }[event.key];
  const found = target && document.querySelector(target);
  if (!found) return;
  event.preventDefault();
  if (event.key === "/") found.focus();
  else found.click();
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open]");
  if (opener?.dataset.open === "palette") openPalette();
  else if (opener) document.getElementById(opener.dataset.open)?.showModal();
  if (event.target.matches("dialog")) event.target.close();  // a click beside it
});

// What the page itself offers: its menu, then the links and buttons of its head.
function places() {
  const links = [...document.querySelectorAll(".side-bar .navigation a, .top-bar .menu a.menu-item, .page-head .actions a")];
  const seen = new Set();
  return links.flatMap((link) => {
    const label = (link.title || link.textContent).replace(/\s+/g, " ").trim();
    if (!label || seen.has(link.href)) return [];
    seen.add(link.href);
    return [{ label, href: link.href }];
  });
}

function openPalette() {
  wanted.value = "";
  fill();
  palette.showModal();
  wanted.focus();
}

function fill() {
  const words = wanted.value.trim().toLowerCase();
  const found = places().filter(({ label }) => words.split(/\s+/).every((word) => label.toLowerCase().includes(word)));
  const { search, searchWords } = palette.dataset;
  if (words && search) {
    const href = `${search}?q=${encodeURIComponent(wanted.value.trim())}`;
    found.push({ label: `${searchWords}: ${wanted.value.trim()}`, href });
  }
  list.replaceChildren(...found.map(({ label, href }, i) => {
    const item = document.createElement("li");
    Object.assign(item, { id: `palette-${i}`, role: "option", textContent: label, className: "menu-item" });
    item.dataset.href = href;
    return item;
  }));
  choose(0);
}

function choose(index) {
  const items = [...list.children];
  items.forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
  const chosen = items[index];
  if (chosen) wanted.setAttribute("aria-activedescendant", chosen.id);
  else wanted.removeAttribute("aria-activedescendant");
  chosen?.scrollIntoView({ block: "nearest" });
}

wanted?.addEventListener("input", fill);
wanted?.addEventListener("keydown", (event) => {
  const items = [...list.children];
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && items.length) {
    event.preventDefault();
    choose((at + step + items.length) % items.length);
  } else if (event.key === "Enter") {
    event.preventDefault();
    go(items[at]);
  }
});
list?.addEventListener("click", (event) => go(event.target.closest("[data-href]")));

function go(item) {
  if (item) location.assign(item.dataset.href);
}
