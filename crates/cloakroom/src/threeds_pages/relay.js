// Between the page around this one and the issuer's page inside: one order in, its news out.
"use strict";

/**
 * Opens the issuer's page when the page around this one sends `order`, once, and hands on messages of the
 * type `news`, which only the frame inside may send. `read` makes of the order what to open.
 */
function relay({ order, news, read }) {
  let frame;
  const isParent = (source) => source === window.parent && window.parent !== window;
  const start = (message) => {
    const wanted = read(message);
    if (typeof wanted.value !== "string" || !isWebAddress(wanted.address)) {
      const details = `${order} needs the address of the issuer's page, and what to send to it`;
      window.parent.postMessage({ type: "error", isCompleted: false, id: "", details }, "*");
      return;
    }
    frame = openFrame(wanted);
  };
  window.addEventListener("message", ({ source, data }) => {
    if (!frame && isParent(source) && data?.type === order) {
      start(data);
    } else if (frame && source === frame.contentWindow && data?.type === news) {
      window.parent.postMessage(data, "*");
    }
  });
}
