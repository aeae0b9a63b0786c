// Progressive extras only: every page reads and works without this file.
const root = document.documentElement;

// Theme: the button turns what is seen now into its opposite and remembers it.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-toggle]")) return;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const seen = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = seen === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is closed: for this page only */ }
  dispatchEvent(new Event("themechange"));
});

// Copy: the button carries the text, or names the element that holds it.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button || !navigator.clipboard) return;
  const source = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
  await navigator.clipboard.writeText(source ? source.textContent.trim() : button.dataset.copy);
  button.classList.add("copied");
  say("Copied.");
  setTimeout(() => button.classList.remove("copied"), 1500);
});

// A polite word for screen readers; what is seen changes beside it.
function say(words) {
  const place = document.getElementById("announcement");
  if (place) place.textContent = words;
}

// A live refresh changes a page in place (idiomorph): focus, what is being typed and what is open stay.
if (window.Idiomorph) {
  Idiomorph.defaults.ignoreActiveValue = true;
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && node.localName === "details");
}

// Toasts leave after six seconds, unless someone points at them or is inside.
function dismissLater(toast) {
  const leave = () => {
    if (toast.matches(":hover, :focus-within")) return setTimeout(leave, 2000);
    toast.classList.add("leaving");
    setTimeout(() => toast.remove(), 250);
  };
  setTimeout(leave, 6000);
}
document.querySelectorAll(".toasts .toast").forEach(dismissLater);

// Menus made of <details> close on Escape and on a click elsewhere; the side menu closes on Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (location.hash === "#side") location.hash = "#main";
});

// A time zone that nobody has chosen yet begins with the browser's, if that is on offer.
for (const zones of document.querySelectorAll("select[data-local-time-zone]")) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const untouched = zones.value === "UTC" && !document.querySelector(".field-error");
  if (untouched && [...zones.options].some((option) => option.value === here)) zones.value = here;
}

// A form is sent once: who presses twice means once. Who comes back, or waits in vain, may send it again.
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post" || event.defaultPrevented) return;
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
  setTimeout(() => sent.delete(event.target), 4000);
});
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const form of document.forms) sent.delete(form);
});

// The first tab of a quote or explain drawer is its close button; links opened with htmx keep the address.
document.addEventListener("toggle", (event) => {
  if (event.newState === "open") event.target.querySelector("[data-first]")?.focus();
}, true);
