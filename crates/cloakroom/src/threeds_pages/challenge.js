// The challenge: the issuer's page, as large as this one.
"use strict";

relay({
  order: "startChallenge",
  news: "challenge",
  read: ({ acsURL, creq }) => ({
    address: acsURL,
    field: "creq",
    value: creq,
    isVisible: true,
  }),
});
