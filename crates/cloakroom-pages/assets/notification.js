// Posts the message to every parent window and to the opener.
"use strict";

{
  const { message, closes } = JSON.parse(document.getElementById("data").textContent);
  // An issuer may have added another frame, and a merchant may not use the helper page.
  for (let page = window; page !== window.top; ) {
    page = page.parent;
    page.postMessage(message, "*");
  }
  window.opener?.postMessage(message, "*");
  if (closes) {
    window.close();
  }
}
