// What a cardholder does: pays in the shop, and answers the issuer's questions.

import { picture } from "./chromium.mjs";

/** The simulated issuer takes this for a code and for a password. */
export const RIGHT = "1234";
export const WRONG = "0000";

/** Opens the checkout page and presses the button. What follows goes by itself, or asks. */
export async function startPaying(page, shop, number, wanted = {}) {
  await page.goto(`${shop.url}${wanted.path ?? "/"}`);
  await page.evaluate((wanted) => Object.assign(window.wanted, wanted), wanted);
  await page.getByLabel("Card number").fill(number);
  await page.getByRole("button", { name: "Pay" }).click();
}

/** Waits until the shop says how it ended, and returns everything that it was told on the way. */
export async function outcome(page, name) {
  await page.locator("#outcome:not(:empty)").waitFor({ timeout: 60_000 });
  await picture(page, name);
  return page.evaluate(() => window.told);
}

/** The issuer's page: in the helper page's frame, in a frame of the shop's page. */
export function issuer(page) {
  return page.frameLocator("#challengeIframe").frameLocator('iframe[title="Payment authentication by your bank"]');
}

/** The issuer's page where the vault's own page is the one around it. */
export function hostedIssuer(page) {
  return page.frameLocator('iframe[title="Payment authentication by your bank"]');
}

export async function enter(frame, code) {
  await frame.locator("#code").fill(code);
  await frame.getByRole("button", { name: "Continue" }).click();
}

export function approve(frame) {
  return frame.getByRole("button", { name: "Approve" }).click();
}

export function cancel(frame) {
  return frame.getByRole("button", { name: "Cancel" }).click();
}

/** Does whatever the issuer asks for, in the right way. */
export async function comply(frame) {
  const button = frame.getByRole("button", { name: /Approve|Continue/ });
  await button.waitFor();
  if (await frame.locator("#code").count()) {
    await frame.locator("#code").fill(RIGHT);
  }
  await button.click();
}
