// Runs 3-D Secure for one session: device data, 3DS Method, authentication, challenge, and the redirect to the
// merchant. The outcome is known only to the vault.
"use strict";

const METHOD_SECONDS = 10;
/** Timeout of a challenge. */
const CHALLENGE_SECONDS = 15 * 60;
const COLOR_DEPTHS = [48, 32, 24, 16, 15, 8, 4, 1];

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const { session, api, messages, is_authenticated: isAuthenticated } = data;
const nonce = loadNonce(data.nonce);
/** Whether the cardholder leaves, so that nothing else may redirect the browser. */
let isLeaving = false;

/** Stores an issued nonce in this tab. No other nonce is issued once the page has started, so a reload needs it. */
function loadNonce(issued) {
  const name = `3ds-${session}`;
  try {
    if (issued) {
      window.sessionStorage.setItem(name, issued);
    }
    return issued ?? window.sessionStorage.getItem(name);
  } catch {
    // Without session storage, the page works until it is reloaded.
    return issued;
  }
}

/** The device data that the browser SDK sends. */
function deviceInfo() {
  const { navigator, screen } = window;
  return {
    browser_color_depth: String(COLOR_DEPTHS.find((depth) => depth <= screen.colorDepth) ?? 1),
    browser_javascript_enabled: true,
    browser_java_enabled: navigator.javaEnabled(),
    browser_language: navigator.language.split("-").slice(0, 2).join("-"),
    browser_screen_height: String(screen.height),
    browser_screen_width: String(screen.width),
    browser_tz: String(new Date().getTimezoneOffset()),
    browser_user_agent: navigator.userAgent,
  };
}

async function call(step, more = {}) {
  // The query contains the public key that the page was opened with.
  const address = `${api}/3ds/redirect/${session}/${step}${window.location.search}`;
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ nonce, ...more }),
  });
  if (!response.ok) {
    throw new Error(`${step} returned HTTP status ${response.status}`);
  }
  return response.json();
}

/** Marks the current step, and announces `message` if there is one. */
function showStep(index, message) {
  [...find("steps").children].forEach((step, position) => {
    step.toggleAttribute("data-done", position < index);
    if (position === index) {
      step.setAttribute("aria-current", "step");
    } else {
      step.removeAttribute("aria-current");
    }
  });
  if (message) {
    find("progress").textContent = message;
  }
}

/** Opens an issuer's page until the notification page reports its completion, or the timeout. */
async function runIssuerPage(page, type, seconds) {
  if (!isWebAddress(page.address)) {
    return;
  }
  let listener;
  const completion = new Promise((resolve) => {
    listener = ({ origin, data }) => {
      const isDone = data?.type === type || data?.type === "error";
      if (origin === window.location.origin && data?.id === session && isDone) {
        resolve();
      }
    };
    window.addEventListener("message", listener);
  });
  const timeout = new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const frame = openFrame({ ...page, title: messages.challenge_frame });
  if (page.isVisible) {
    frame.focus();
  }
  await Promise.race([completion, timeout]);
  window.removeEventListener("message", listener);
  frame.remove();
}

async function authenticate() {
  const { method_url, method_data } = await call("device", { device_info: deviceInfo() });
  if (method_url) {
    const field = "threeDSMethodData";
    const page = { address: method_url, field, value: method_data, isVisible: false };
    await runIssuerPage(page, "method", METHOD_SECONDS);
  }
  showStep(1, messages.contacting_bank);
  const { status, acs_url, creq } = await call("authenticate");
  if (status === "challenge") {
    await runChallenge({ address: acs_url, field: "creq", value: creq, isVisible: true });
  }
}

async function runChallenge(page) {
  const [main, place] = [find("main"), find("challenge")];
  main.hidden = true;
  place.hidden = false;
  place.setAttribute("aria-label", messages.challenge_shown);
  document.body.dataset.view = "challenge";
  document.title = `${messages.challenge_frame} – ${document.title}`;
  await runIssuerPage({ ...page, parent: place }, "challenge", CHALLENGE_SECONDS);
  delete document.body.dataset.view;
  place.hidden = true;
  main.hidden = false;
}

async function run() {
  showStep(0);
  if (!nonce) {
    return showError(messages.other_window, false);
  }
  if (!isAuthenticated) {
    // After a failure, `finish` still returns the merchant's callback URL.
    await authenticate().catch(() => {});
  }
  showStep(2, messages.returning);
  const { location } = await call("finish");
  if (!isLeaving) {
    redirect(location);
  }
}

function redirect(location) {
  if (!isWebAddress(location)) {
    throw new Error("the callback URL is missing or invalid");
  }
  find("dialog").close();
  window.location.replace(location);
}

function showError(message, canRetry) {
  find("steps").hidden = true;
  find("spinner").hidden = true;
  find("progress").textContent = message;
  find("retry").hidden = !canRetry;
  find("cancel").hidden = !canRetry;
}

/** Returns to the merchant without the outcome. */
async function leave() {
  isLeaving = true;
  find("leave").disabled = true;
  try {
    const { location } = await call("cancel");
    redirect(location);
  } catch {
    isLeaving = false;
    find("leave").disabled = false;
    find("dialog").close();
    showError(messages.not_confirmed, true);
  }
}

find("cancel").addEventListener("click", () => find("dialog").showModal());
find("stay").addEventListener("click", () => find("dialog").close());
find("leave").addEventListener("click", leave);
find("retry").addEventListener("click", () => window.location.reload());

run().catch(() => showError(messages.not_confirmed, true));
