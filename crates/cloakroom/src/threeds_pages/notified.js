// Tells every page around this one, and the one that opened it, that the issuer is done.
"use strict";

{
  const { message, closes } = JSON.parse(document.getElementById("data").textContent);
  // An issuer may have put one more frame in between, and a merchant's page may have no helper page.
  for (let page = window; page !== window.top; ) {
    page = page.parent;
    page.postMessage(message, "*");
  }
  window.opener?.postMessage(message, "*");
  if (closes) {
    window.close();
  }
}
