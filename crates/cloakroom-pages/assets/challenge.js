// Shows the issuer's challenge in a full-size frame.
"use strict";

relay({
  command: "startChallenge",
  event: "challenge",
  read: ({ acsURL, creq }) => ({
    address: acsURL,
    field: "creq",
    value: creq,
    isVisible: true,
  }),
});
