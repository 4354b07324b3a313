// Runs 3-D Secure for one session: device data, 3DS Method, authentication, challenge, and the redirect to the
// merchant. The outcome is known only to the vault.
"use strict";

const METHOD_SECONDS = 10;
/** Timeout of a challenge. */
const CHALLENGE_SECONDS = 15 * 60;
const COLOR_DEPTHS = [48, 32, 24, 16, 15, 8, 4, 1];

const data = JSON.parse(document.getElementById("data").textContent);
const { session, api, is_authenticated: isAuthenticated } = data;
const nonce = loadNonce(data.nonce);

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
  const frame = openFrame(page);
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
  const { status, acs_url, creq } = await call("authenticate");
  if (status === "challenge") {
    const main = document.querySelector("main");
    main.hidden = true;
    const page = { address: acs_url, field: "creq", value: creq, isVisible: true };
    await runIssuerPage(page, "challenge", CHALLENGE_SECONDS);
    main.hidden = false;
  }
}

async function run() {
  if (!nonce) {
    throw new Error("the page is open in another window");
  }
  if (!isAuthenticated) {
    // After a failure, `finish` still returns the merchant's callback URL.
    await authenticate().catch(() => {});
  }
  const { location } = await call("finish");
  if (!isWebAddress(location)) {
    throw new Error("the callback URL is missing or invalid");
  }
  window.location.replace(location);
}

run().catch(() => {
  const progress = document.getElementById("progress");
  progress.textContent = "We could not confirm this payment. Please return to the merchant's website and try again.";
});
