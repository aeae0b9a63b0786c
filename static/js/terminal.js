// The web terminal of a lease: xterm.js over a WebSocket. Binary messages are keys and output, text messages are JSON.
import { FitAddon } from "../vendor/addon-fit.mjs";
import { Terminal } from "../vendor/xterm.mjs";

const part = document.querySelector("[data-terminal]");
const screen = part?.querySelector("[data-terminal-screen]");
const message = part?.querySelector("[data-terminal-message]");
const reconnect = part?.querySelector("[data-terminal-reconnect]");
let terminal = null, fit = null, socket = null;

// xterm.js writes its styles into <style> elements, which the content security policy refuses. A sheet that a script
// constructs is allowed: an element that draws nothing stands in and passes the text on.
const createElement = document.createElement.bind(document);
document.createElement = (name, options) => {
  if (name !== "style") return createElement(name, options);
  const made = createElement("template"), sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(made, "textContent", { set: (text) => sheet.replaceSync(text), get: () => "" });
  return made;
};

function theme() {
  const style = getComputedStyle(screen);
  return {
    background: style.backgroundColor, foreground: style.color, cursor: style.color,
    cursorAccent: style.backgroundColor, selectionBackground: style.getPropertyValue("outline-color"),
  };
}

function show(state) {
  for (const each of part.querySelectorAll("[data-state]")) each.hidden = each.dataset.state !== state;
  reconnect.hidden = state !== "closed";
}

function send(values) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(values);
}

function connect() {
  show("connecting");
  terminal.reset();
  terminal.focus();
  fit.fit();
  socket = new WebSocket(`${part.dataset.terminal}?columns=${terminal.cols}&rows=${terminal.rows}`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => show("connected"));
  socket.addEventListener("message", (event) => terminal.write(new Uint8Array(event.data)));
  socket.addEventListener("close", (event) => {
    const why = event.reason || part.dataset.lost;
    show("closed");
    message.textContent = why.charAt(0).toUpperCase() + why.slice(1) + (/[.!?]$/.test(why) ? "" : ".");
    terminal.write(`\r\n[${message.textContent}]\r\n`);
    terminal.blur();
  });
}

async function start() {
  await document.fonts.load("13px JBM");
  terminal = new Terminal({
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: getComputedStyle(screen).fontFamily, fontSize: 13, lineHeight: 1.25, scrollback: 5000, theme: theme(),
    minimumContrastRatio: 4.5,
  });
  fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(screen);
  screen.querySelector(".xterm-viewport").style.background = "transparent";  // the library's own is black
  terminal.onData((keys) => send(new TextEncoder().encode(keys)));
  terminal.onResize(({ cols, rows }) => send(JSON.stringify({ type: "resize", columns: cols, rows })));
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key === "Tab" && event.shiftKey) return false;  // leaves the terminal
    const copies = event.key === "c" && terminal.hasSelection();
    return !((event.ctrlKey || event.metaKey) && !event.shiftKey && (copies || event.key === "v"));
  });
  new ResizeObserver(() => fit.fit()).observe(screen);
  const recolour = () => { terminal.options.theme = theme(); };
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  reconnect.addEventListener("click", () => { message.textContent = part.dataset.note; connect(); });
  addEventListener("pagehide", () => socket?.close());
  connect();
}

if (part) start();
