// A passkey that did not work says why, above the button that asked for it, and what to do instead.
const BUTTONS = "#passkey_login, #mfa_webauthn_add, #mfa_webauthn_authenticate, #mfa_webauthn_reauthenticate";
const WHY = {
  NotAllowedError: "No passkey was used: you cancelled, it took too long, or none here belongs to this site.",
  InvalidStateError: "This key opens the account already.",
  NotSupportedError: "This browser or this key cannot do what is needed. Try another one.",
};

function why(error) {
  if (/^[\d.]+$|^\[/.test(location.hostname)) {
    const named = new URL(location.href);
    named.hostname = "localhost";
    const here = /^127\.|^\[::1\]$/.test(location.hostname);
    return `Browsers allow passkeys at a name only, not at ${location.hostname}. ` +
      (here ? `Open ${named.origin} instead.` : "Open the portal by its name instead.");
  }
  if (!window.isSecureContext) return "Browsers allow passkeys over https only. Ask whoever runs this installation.";
  if (!window.PublicKeyCredential) return "This browser knows no passkeys.";
  return WHY[error?.name] ?? `The passkey could not be used: ${error?.message ?? error}`;
}

// A click before the scripts listen would do nothing, so the button waits for them.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(BUTTONS)) button.disabled = false;
});

document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const button = document.querySelector(BUTTONS);
  if (!button) return;
  button.parentElement.querySelectorAll("[data-key-trouble]").forEach((old) => old.remove());
  const note = document.getElementById("key-trouble").content.firstElementChild.cloneNode(true);
  note.dataset.keyTrouble = "";
  note.querySelector("span").textContent = why(event.detail?.exception);
  button.before(note);
});
