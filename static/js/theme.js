// Runs before the first paint, so that a remembered theme never flashes. The rest is in page.js.
document.documentElement.classList.add("js");
try {
  const saved = localStorage.getItem("theme");
  if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
} catch { /* storage is closed: the system's theme stays */ }
