// The bell, the control room's list and the tab's title come from one answer, so they always agree.
const plain = document.title.replace(/^\(\d+\) /, "");

function showCount() {
  const count = Number(document.getElementById("alerts")?.dataset.count ?? 0);
  document.title = count ? `(${count}) ${plain}` : plain;
}

showCount();
document.addEventListener("htmx:afterSettle", showCount);
document.addEventListener("htmx:oobAfterSwap", showCount);
// A map that changed may have changed what needs attention, and whoever comes back wants to know at once.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "map") htmx.trigger(document.body, "attend");
});
// A page that nobody looks at asks for nothing.
const ask = () => { if (!document.hidden) window.htmx?.trigger(document.body, "attend"); };
setInterval(ask, 20_000);
document.addEventListener("visibilitychange", ask);
