// Lines of a lease's log as they are written. Without this file the page shows the lines it was loaded with.
const view = document.getElementById("log-lines");
const list = view.querySelector("ol");
const button = document.getElementById("follow");
const LABELS = { platform: "SYS", error: "ERROR", warning: "WARN", info: "INFO", plain: "" };
const MOST_LINES = 5000; // older ones leave the page; they stay in the log
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: view.dataset.timeZone });
const { stream: address, search, source, level } = view.dataset;
const wanted = (search || "").toLowerCase();
let stream = null, last = 0, following = true;

function isWanted(line) {
  return (!wanted || line.text.toLowerCase().includes(wanted)) && (!source || line.source === source)
    && (!level || line.level === level);
}

function element(name, text, attributes = {}) {
  const made = Object.assign(document.createElement(name), attributes);
  made.textContent = text;
  return made;
}

function addLine(line) {
  if (line.line_number <= last) return;
  last = line.line_number;
  if (!isWanted(line)) return;
  document.getElementById("log-empty")?.remove();
  const kind = line.source === "platform" ? "platform" : line.level || "plain";
  const row = element("li", "", { className: `log-${kind}`, id: `line-${line.line_number}` });
  row.append(
    element("time", clock.format(new Date(line.at)), { dateTime: line.at }),
    element("b", LABELS[kind]),
    element("span", line.text),
  );
  list.append(row);
  while (list.children.length > MOST_LINES) list.firstElementChild.remove();
  if (following) view.scrollTop = view.scrollHeight;
}

function listen() {
  if (!address || stream || document.hidden) return;
  const from = last ? address.replace(/cursor=\d+/, `cursor=${last}`) : address;
  stream = new EventSource(from, { withCredentials: true });
  stream.addEventListener("line", (event) => addLine(JSON.parse(event.data)));
  stream.addEventListener("end", hangUp);
}

function hangUp() {
  stream?.close();
  stream = null;
}

function follow(on) {
  following = on;
  button.setAttribute("aria-pressed", String(on));
  if (on) view.scrollTop = view.scrollHeight;
}

button.addEventListener("click", () => follow(!following));
// Who scrolls up reads; who scrolls to the end wants to see what comes.
view.addEventListener("scroll", () => {
  const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 8;
  if (atEnd !== following) follow(atEnd);
});
document.addEventListener("visibilitychange", () => (document.hidden ? hangUp() : listen()));
addEventListener("pagehide", hangUp);
view.scrollTop = view.scrollHeight;
listen();
