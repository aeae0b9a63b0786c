// Figures that grow while one looks. The server says what is true now and how fast it grows; the page only
// adds the time since it first saw the element, so a wrong clock in the browser changes nothing.
const seenAt = new WeakMap();
const two = (n) => String(n).padStart(2, "0");

function durationText(seconds, tight) {
  const s = Math.max(0, Math.floor(seconds));
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600), min = Math.floor(s / 60);
  if (s < 60) return `${s} s`;
  if (h < 1) return `${min} min`;
  if (h < 48) return tight ? `${h} h` : `${h} h ${two(min % 60)} min`;
  return tight ? `${d} d` : `${d} d ${h % 24} h`;
}

function moneyText(minor, symbol, exponent) {
  const figure = (Math.floor(Math.abs(minor)) / 10 ** exponent).toLocaleString("en-US", {
    minimumFractionDigits: exponent, maximumFractionDigits: exponent,
  });
  return (minor < 0 ? "−" : "") + symbol + figure;
}

function tick() {
  const now = performance.now();
  for (const el of document.querySelectorAll("[data-tick]")) {
    if (seenAt.get(el)?.from !== el.dataset.from) seenAt.set(el, { from: el.dataset.from, at: now });
    const passed = (now - seenAt.get(el).at) / 1000;
    const { tick: kind, from, symbol, exponent, perSecond, tight } = el.dataset;
    let text;
    if (kind === "seconds") text = `${Math.floor(Number(from) + passed).toLocaleString("en-US")} s`;
    else if (kind === "money") text = moneyText(Number(from) + passed * Number(perSecond), symbol, Number(exponent));
    else text = durationText(kind === "down" ? Number(from) - passed : Number(from) + passed, tight !== undefined);
    if (el.textContent !== text) el.textContent = text;
  }
}

// The tenant's zone is what the page says; the reader's own is one hover away.
function ownTime(event) {
  const time = event.target.closest?.("time[datetime]");
  if (!time || time.dataset.own) return;
  time.dataset.own = "1";
  const here = new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" });
  time.title = `${time.title}\n${here} where you are`;
}

tick();
setInterval(tick, 1000);
document.addEventListener("pointerover", ownTime);
document.addEventListener("htmx:afterSettle", tick);

// What a page asks changes with what it shows, but not under the hand of who is being asked.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.detail.target.querySelector(":popover-open")) event.detail.shouldSwap = false;
});
