// What a merchant's page does: a token for the card, a session, authentication by the merchant's server,
// a challenge if the issuer wants one, and the result, which the server reads for itself.
"use strict";

/** How the suite wants the official package to be called, beyond what every shop says. */
window.wanted = {};
/** Everything that came back, for the suite to look at. */
window.told = {};

const { baseUrl, publicKey } = window.settings;

function step(text) {
  const item = document.createElement("li");
  item.textContent = text;
  document.getElementById("steps").append(item);
}

async function post(url, body, headers = {}) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) {
    throw Object.assign(new Error(told.title), { told });
  }
  return told;
}

async function pay(number) {
  const { wanted, told } = window;
  const threeds = window.BasisTheory3ds(publicKey, {
    apiBaseUrl: baseUrl,
    sdkBaseUrl: baseUrl,
    disableTelemetry: !wanted.telemetry,
  });
  const card = { type: "card", data: { number, expiration_month: 12, expiration_year: 2038 } };
  const token = await post(`${baseUrl}/tokens`, card, { "BT-API-KEY": publicKey });
  step("The card is a token.");

  told.session = await threeds.createSession({ tokenId: token.id, ...wanted.session });
  const sessionId = told.session.id;
  step(`There is a session for a ${told.session.cardBrand} card.`);

  told.authentication = await post("/authenticate", { sessionId, more: wanted.authentication });
  const { authenticationStatus, acsChallengeUrl, acsTransactionId } = told.authentication;
  step(`The issuer says: ${authenticationStatus}.`);
  if (authenticationStatus !== "challenge") {
    return told.authentication;
  }

  told.challenge = await threeds.startChallenge({
    sessionId,
    acsChallengeUrl,
    acsTransactionId,
    threeDSVersion: told.authentication.threedsVersion,
    containerId: "challenge",
    ...wanted.challenge,
  });
  step(`The challenge is over: ${told.challenge.authenticationStatus}.`);
  told.result = await post("/result", { sessionId });
  return told.result;
}

document.getElementById("pay").addEventListener("submit", async (event) => {
  event.preventDefault();
  const outcome = document.getElementById("outcome");
  try {
    const { authenticationStatus } = await pay(document.getElementById("number").value);
    const isPaid = ["successful", "attempted"].includes(authenticationStatus);
    outcome.textContent = isPaid ? "Thank you, it is paid." : `Not paid: ${authenticationStatus}.`;
  } catch (error) {
    // The official package throws texts as well as errors.
    window.told.error = error.message ?? String(error);
    window.told.problem = error.told;
    outcome.textContent = `Not paid: ${window.told.error}`;
  }
});
