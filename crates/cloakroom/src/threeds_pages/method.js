// The 3DS Method: an issuer looks at the browser, in a frame that nobody sees.
"use strict";

relay({
  order: "startMethod",
  news: "method",
  read: ({ threeDSMethodURL, threeDSMethodData }) => ({
    address: threeDSMethodURL,
    field: "threeDSMethodData",
    value: threeDSMethodData,
    isVisible: false,
  }),
});
