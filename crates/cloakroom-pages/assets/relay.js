// Relays messages between the parent page and the issuer's page in the inner frame.
"use strict";

/**
 * Opens the issuer's page when the parent page sends a message of type `command`, once, and forwards messages of type
 * `event` from the inner frame only. `read` converts the command to the arguments of `openFrame`.
 */
function relay({ command, event, read }) {
  let frame;
  const isParent = (source) => source === window.parent && window.parent !== window;
  const start = (message) => {
    const wanted = read(message);
    if (typeof wanted.value !== "string" || !isWebAddress(wanted.address)) {
      const details = `${command} requires the URL of the issuer's page and the form value to send to it`;
      window.parent.postMessage({ type: "error", isCompleted: false, id: "", details }, "*");
      return;
    }
    const { frame_title: title } = JSON.parse(document.getElementById("data").textContent);
    frame = openFrame({ ...wanted, title });
    if (wanted.isVisible) {
      frame.addEventListener("load", () => (document.getElementById("waiting").hidden = true), { once: true });
    }
  };
  window.addEventListener("message", ({ source, data }) => {
    if (!frame && isParent(source) && data?.type === command) {
      start(data);
    } else if (frame && source === frame.contentWindow && data?.type === event) {
      window.parent.postMessage(data, "*");
    }
  });
}
