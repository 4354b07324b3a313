// The checkout: collects the card with web elements, authenticates it with 3-D Secure, and shows the order.
//
// The page never has the card number. It sends ids to the shop's server: that of the token intent, which holds the card
// in the vault, and that of the 3DS session.

/** Issuers give cardholders up to ten minutes. */
const CHALLENGE_TIMEOUT_MS = 10 * 60 * 1000;
/** How often an order is read, once per second. */
const READS_MAX = 60;

const byId = (id) => document.getElementById(id);
const form = byId("checkout");

const MESSAGES = {
  declined: "Your card was declined, and you were not charged. Try another card, or contact your bank.",
  not_authenticated: "Your bank did not confirm this payment, and you were not charged. Try again, or use another card.",
  no_threeds: "This card cannot be confirmed online, and you were not charged. Please use another card.",
  failed: "The payment did not go through, and you were not charged. Please try again.",
  too_many_attempts: "There were too many attempts. Please wait ten minutes and try again.",
  not_human: "We could not verify that you are not a robot. Reload the page and try again.",
  invalid: "Some details are missing or not valid. Check them and try again.",
  unreachable: "We could not reach the shop. Check your connection and try again.",
  unavailable: "Card payments are not available at the moment. Please reload the page in a minute.",
};
const RECEIPTS = {
  paid: { title: "Thank you. Your order is paid.", text: "Please keep the order number for your records." },
  pending: {
    title: "We are checking your payment.",
    text: "Please do not pay again. If you have questions, contact us with your order number.",
  },
};
const FIELD_ERRORS = {
  number: { incomplete: "Enter the whole card number.", invalid: "This card number is not valid. Check the digits." },
  date: { incomplete: "Enter month and year.", invalid: "This date is not valid or has passed." },
  code: { incomplete: "Enter the security code.", invalid: "This security code is not valid." },
};

const settings = await (await fetch("/settings.json")).json();
showItem(settings.item);

/** Identifies the order before it is placed: however often it is sent, the server charges it once. */
let orderId = crypto.randomUUID();

let elements;
let threeds;
try {
  threeds = window.BasisTheory3ds(settings.public_key, {
    apiBaseUrl: `https://${settings.vault_host}`,
    sdkBaseUrl: `https://${settings.vault_host}`,
    disableTelemetry: true,
  });
  elements = await mountElements();
  byId("pay").disabled = false;
} catch {
  showProblem("unavailable");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (byId("pay").disabled || !isComplete()) {
    return;
  }
  setBusy(true);
  try {
    showOrder(await pay());
  } catch (error) {
    showProblem(error.code ?? "failed");
  }
  setBusy(false);
});

/** Collects the card, authenticates it, and returns the order as the server has it. */
async function pay() {
  const { number, date, code, vault } = elements;
  showProgress("Sending your card to the vault...");
  const intent = await vault.tokenIntents.create({
    type: "card",
    data: { number, expiration_month: date.month(), expiration_year: date.year(), cvc: code },
  });

  showProgress("Contacting your bank...");
  const session = await threeds.createSession({ tokenIntentId: intent.id }).catch(() => {
    throw problem("no_threeds");
  });
  const order = await post("/orders", {
    id: orderId,
    token_intent_id: intent.id,
    session_id: session.id,
    name: form.elements.name.value.trim(),
    email: form.elements.email.value.trim(),
    captcha: window.captcha?.(),
  });
  if (order.state !== "challenge") {
    return order;
  }

  await challenge(order.challenge);
  showProgress("Completing your payment...");
  const completed = await post(`/orders/${orderId}/challenge`, {});
  // The request was lost, or is late: the server may still charge the card.
  return completed.state === "challenge" ? { ...completed, state: "pending" } : completed;
}

/** Shows the issuer's page until the cardholder is done. The server reads the result from the vault. */
async function challenge({ session_id, acs_challenge_url, acs_transaction_id, threeds_version }) {
  form.hidden = true;
  byId("challenge").hidden = false;
  byId("challenge-title").focus();
  const completed = threeds.startChallenge({
    sessionId: session_id,
    acsChallengeUrl: acs_challenge_url,
    acsTransactionId: acs_transaction_id,
    threeDSVersion: threeds_version,
    containerId: "challenge-frame",
    windowSize: "05",
    timeout: CHALLENGE_TIMEOUT_MS,
  });
  // Screen readers announce the frame by its title, which the package does not set.
  byId("challenge-frame").querySelector("iframe")?.setAttribute("title", "Confirmation by your bank");
  // Whether the package resolves or rejects, after a timeout for example, the result that the server reads decides.
  await completed.catch(() => {});
  byId("challenge-frame").replaceChildren();
  byId("challenge").hidden = true;
  form.hidden = false;
}

/** The three fields, in frames of the vault. */
async function mountElements() {
  const vault = await window.basistheory(settings.public_key, {
    customDomain: settings.vault_host,
    disableTelemetry: true,
  });
  const create = (type, targetId, options) => vault.createElement(type, { targetId, style: style(), ...options });
  const number = create("cardNumber", "number", { "aria-label": "Card number", autoComplete: "cc-number" });
  const date = create("cardExpirationDate", "date", { "aria-label": "Expiration date", autoComplete: "cc-exp" });
  const code = create("cardVerificationCode", "code", { "aria-label": "Security code", autoComplete: "cc-csc" });

  for (const [id, element] of Object.entries({ number, date, code })) {
    byId(id).addEventListener("click", () => element.focus());
    element.on("focus", () => byId(id).classList.add("focused"));
    element.on("blur", () => {
      byId(id).classList.remove("focused");
      if (!element.metadata.empty) {
        showElementError(id, element);
      }
    });
    element.on("change", () => byId(id).classList.contains("invalid") && showElementError(id, element));
  }
  number.on("change", ({ cardBrand }) => code.update({ cardBrand }));
  await Promise.all([number.mount("#number"), date.mount("#date"), code.mount("#code")]);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    [number, date, code].forEach((element) => element.update({ style: style() }));
  });
  return { vault, number, date, code };
}

/** Colors of the page for the text in the frames. */
function style() {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return {
    base: {
      color: color("--text"),
      fontFamily: "system-ui, sans-serif",
      fontSize: "16px",
      padding: "12px 0",
      "::placeholder": { color: color("--muted") },
    },
    invalid: { color: color("--error") },
  };
}

["name", "email"].forEach((id) => {
  byId(id).addEventListener("input", () => byId(id).getAttribute("aria-invalid") === "true" && showInputError(byId(id)));
});

/** Whether everything is filled in. Shows what is not, and moves the focus there. */
function isComplete() {
  const inputs = ["name", "email"].map((id) => [showInputError(byId(id)), () => byId(id).focus()]);
  const fields = ["number", "date", "code"].map((id) => [showElementError(id, elements[id]), () => elements[id].focus()]);
  const first = [...inputs, ...fields].find(([isValid]) => !isValid);
  first?.[1]();
  return !first;
}

function showInputError(input) {
  const isValid = input.checkValidity() && input.value.trim() !== "";
  const text = input.type === "email" ? "Enter an email address such as ada@example.com." : "Enter the name on your card.";
  input.setAttribute("aria-invalid", String(!isValid));
  byId(`${input.id}-error`).textContent = isValid ? "" : text;
  return isValid;
}

function showElementError(id, { metadata }) {
  const { complete, valid, empty } = metadata;
  byId(id).classList.toggle("invalid", !complete);
  const kind = empty || valid ? "incomplete" : "invalid";
  byId(`${id}-error`).textContent = complete ? "" : FIELD_ERRORS[id][kind];
  return complete;
}

function showOrder(order) {
  const receipt = RECEIPTS[order.state];
  if (!receipt) {
    showProblem(order.state);
    // The card was not charged, so the next attempt is a new order.
    orderId = crypto.randomUUID();
    return;
  }
  form.hidden = true;
  byId("receipt").hidden = false;
  byId("receipt").classList.add(order.state);
  byId("receipt-title").textContent = receipt.title;
  byId("receipt-text").textContent = receipt.text;
  byId("receipt-order").textContent = order.id.slice(0, 8).toUpperCase();
  byId("receipt-card").textContent = order.card ? `Ending in ${order.card.last4}` : "";
  byId("receipt-title").focus();
  showSaved(order);
}

/** Reads the order until the server has received the webhook for the saved card, for a minute at most. */
async function showSaved(order) {
  const saved = byId("receipt-saved");
  let isSaved = order.card_saved;
  for (let reads = 0; !isSaved && reads < READS_MAX; reads++) {
    saved.textContent = "Saving...";
    await second();
    isSaved = (await request(`/orders/${order.id}`))?.body.card_saved;
  }
  saved.textContent = isSaved ? "Ready for your next order" : "Not confirmed yet";
}

function showItem({ name, description, amount, currency }) {
  const price = new Intl.NumberFormat("en", { style: "currency", currency }).format(amount / 100);
  const texts = { name, description, price };
  document.querySelectorAll("[data-item]").forEach((place) => (place.textContent = texts[place.dataset.item]));
}

function showProblem(code) {
  byId("problem").textContent = MESSAGES[code] ?? MESSAGES.failed;
  byId("problem").hidden = false;
  showProgress("");
}

function showProgress(text) {
  byId("progress").textContent = text;
}

function setBusy(isBusy) {
  byId("pay").disabled = isBusy;
  form.setAttribute("aria-busy", String(isBusy));
  if (isBusy) {
    byId("problem").hidden = true;
  } else {
    showProgress("");
  }
}

/** Sends a request that changes the order, and returns the order. */
async function post(path, body) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (response && !response.ok) {
    throw problem(response.body.error);
  }
  return isProcessed(response) ? response.body : readOrder();
}

/** Reads the order until the server has processed it, for example after a lost response. */
async function readOrder() {
  for (let reads = 0; reads < READS_MAX; reads++) {
    const response = await request(`/orders/${orderId}`);
    if (response?.status === 404) {
      // Paying again is safe: it sends the same id.
      throw problem("unreachable");
    }
    if (isProcessed(response)) {
      return response.body;
    }
    await second();
  }
  return { id: orderId, state: "pending" };
}

function isProcessed(response) {
  return response?.ok && !["authenticating", "charging"].includes(response.body.state);
}

/** A response with JSON. Undefined if it is lost: the server may have processed the request. */
async function request(path, options) {
  try {
    const response = await fetch(path, options);
    const { ok, status } = response;
    return status < 500 ? { ok, status, body: await response.json() } : undefined;
  } catch {
    return undefined;
  }
}

function second() {
  return new Promise((resolve) => setTimeout(resolve, 1000));
}

function problem(code) {
  return Object.assign(new Error(code), { code });
}
