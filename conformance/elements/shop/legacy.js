// A checkout with the older official package.

import { BasisTheory } from "@basis-theory/basis-theory-js";

const { publicKey, ELEMENTS } = window.settings;
const base = `https://${ELEMENTS}`;

window.legacy = async () => {
  const bt = await new BasisTheory().init(publicKey, {
    elements: true,
    elementsClientUrl: `${base}/web-elements/2.0.0/client/index.js`,
    elementsBaseUrl: `${base}/web-elements/2.0.0/hosted-elements`,
    apiBaseUrl: base,
    disableTelemetry: true,
  });
  const element = bt.createElement("cardNumber", { targetId: "number" });
  await element.mount("#number");
  window.bt = bt;
  window.number = element;
};
