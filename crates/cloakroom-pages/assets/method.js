// Runs the 3DS Method in a hidden frame.
"use strict";

relay({
  command: "startMethod",
  event: "method",
  read: ({ threeDSMethodURL, threeDSMethodData }) => ({
    address: threeDSMethodURL,
    field: "threeDSMethodData",
    value: threeDSMethodData,
    isVisible: false,
  }),
});
