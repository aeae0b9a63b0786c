// Forms keep what was typed and lead to the first error; a button that waits for a correction wakes while one types.
const invalid = "[aria-invalid=true], .field:has(.field-error) :is(input, select, textarea)";

// What was sent with a refused form whose page was drawn anew: its values come back, in its own drawer.
function refill() {
  const kept = document.getElementById("kept-form");
  if (!kept) return;
  const { action, values, errors } = JSON.parse(kept.textContent);
  const fits = (form) => [...form.elements].every((each) =>
    each.type !== "hidden" || each.name === "csrfmiddlewaretoken" || !(each.name in values) || values[each.name].includes(each.value));
  const names = (form) => new Set([...form.elements].map((each) => each.name).filter((name) => name in values)).size;
  const form = [...document.forms]
    .filter((each) => each.method === "post" && new URL(each.action).pathname === action && fits(each))
    .sort((one, other) => names(other) - names(one))[0];
  if (!form) return;
  for (const each of form.elements) {
    const sent = values[each.name];
    if (isTouched(each)) continue;  // somebody was faster than this script
    if (each.type === "checkbox" || each.type === "radio") each.checked = Boolean(sent?.includes(each.value));
    else if (sent && !["hidden", "file", "password", "submit"].includes(each.type)) each.value = sent[0];
    if (each.name in errors && !each.closest(".field:has(.field-error)")) markInvalid(each, errors[each.name]);
  }
  form.closest("details")?.setAttribute("open", "");
  if (isTyping()) return;
  const focus = () => focusFirst(form) ||
    [...form.elements].find((each) => each.matches("input:not([type=hidden]), select, textarea"))?.focus();
  const drawer = form.closest("[popover]");
  if (!drawer) return focus();
  drawer.addEventListener("toggle", () => setTimeout(focus), { once: true });  // after its first button had the focus
  drawer.showPopover();
}

// Whether a control has another value than the page gave it.
function isTouched(control) {
  if (control.type === "checkbox" || control.type === "radio") return control.checked !== control.defaultChecked;
  if (!control.options) return "defaultValue" in control && control.value !== control.defaultValue;
  const given = [...control.options].findIndex((each) => each.defaultSelected);
  return control.selectedIndex !== Math.max(given, 0) && control.options.length > 0;
}

// Whether somebody already types: then the focus stays.
function isTyping() {
  const active = document.activeElement;
  return Boolean(active?.matches("input, select, textarea") && isTouched(active));
}

function markInvalid(control, words) {
  if (control.type === "hidden" || control.matches("button, fieldset")) return;
  control.setAttribute("aria-invalid", "true");
  if (!words) return;  // said at the head of the form
  const note = document.createElement("p");
  note.className = "field-error";
  note.id = `${control.id || control.name}-err`;
  note.textContent = words;
  control.setAttribute("aria-describedby", note.id);
  (control.closest(".input-group") ?? control).after(note);
}

function focusFirst(within) {
  const first = within.querySelector(invalid);
  first?.closest("details")?.setAttribute("open", "");
  first?.focus();
  return Boolean(first);
}

refill();
if (!isTyping() && !document.activeElement?.matches("[aria-invalid=true]"))
  focusFirst(document.getElementById("main") ?? document);

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => {
    const form = event.target.form;
    if (!form) return;
    for (const each of form.elements) if (each.matches("button[data-wakes]")) each.disabled = false;
  });
}
