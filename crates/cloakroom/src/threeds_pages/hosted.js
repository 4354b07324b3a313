// All of 3-D Secure for one session: device data, 3DS Method, authentication, challenge, and back to the
// merchant. What is known about the result is known to the vault; here it is only waited for.
"use strict";

const METHOD_SECONDS = 10;
/** A challenge without any news by then is not waited for any longer. */
const CHALLENGE_SECONDS = 15 * 60;
const COLOR_DEPTHS = [48, 32, 24, 16, 15, 8, 4, 1];

const { session, nonce, api } = JSON.parse(document.getElementById("data").textContent);

/** What the browser package sends as well. */
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
  // The key that the page was opened with is good for its calls too.
  const address = `${api}/3ds/redirect/${session}/${step}${window.location.search}`;
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ nonce, ...more }),
  });
  if (!answer.ok) {
    throw new Error(`${step} was answered with ${answer.status}`);
  }
  return answer.json();
}

/** Opens an issuer's page until the vault's own notification page says that it is done, or time is up. */
async function visit(page, type, seconds) {
  if (!isWebAddress(page.address)) {
    return;
  }
  let listener;
  const news = new Promise((resolve) => {
    listener = ({ origin, data }) => {
      const isDone = data?.type === type || data?.type === "error";
      if (origin === window.location.origin && data?.id === session && isDone) {
        resolve();
      }
    };
    window.addEventListener("message", listener);
  });
  const patience = new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const frame = openFrame(page);
  await Promise.race([news, patience]);
  window.removeEventListener("message", listener);
  frame.remove();
}

async function authenticate() {
  const { method_url, method_data } = await call("device", { device_info: deviceInfo() });
  if (method_url) {
    const field = "threeDSMethodData";
    const page = { address: method_url, field, value: method_data, isVisible: false };
    await visit(page, "method", METHOD_SECONDS);
  }
  const { status, acs_url, creq } = await call("authenticate");
  if (status === "challenge") {
    const main = document.querySelector("main");
    main.hidden = true;
    const page = { address: acs_url, field: "creq", value: creq, isVisible: true };
    await visit(page, "challenge", CHALLENGE_SECONDS);
    main.hidden = false;
  }
}

async function run() {
  // Whatever went wrong, the vault knows where the merchant wants to have the cardholder now.
  await authenticate().catch(() => {});
  const { location } = await call("finish");
  if (!isWebAddress(location)) {
    throw new Error("there is no page to go to");
  }
  window.location.replace(location);
}

run().catch(() => {
  const progress = document.getElementById("progress");
  progress.textContent = "This cannot be continued. Please go back to the shop and try again.";
});
