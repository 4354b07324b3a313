// Protection against card testing: criminals try stolen cards where payments cost them nothing.

const ATTEMPTS_MAX = Number(process.env.ATTEMPTS_MAX ?? 10);
const PERIOD_MS = 10 * 60 * 1000;

/** Times of the attempts by client address. With several servers, keep them in Redis. */
const attempts = new Map();

/** Counts an attempt to pay, and returns whether it may go on. */
export function isAllowed(address, now = Date.now()) {
  for (const [one, times] of attempts) {
    if (times.at(-1) <= now - PERIOD_MS) {
      attempts.delete(one);
    }
  }
  const recent = (attempts.get(address) ?? []).filter((time) => time > now - PERIOD_MS);
  if (recent.length >= ATTEMPTS_MAX) {
    return false;
  }
  attempts.set(address, [...recent, now]);
  return true;
}

/**
 * The place for a CAPTCHA. The page sends the result of `window.captcha()` as `captcha`; verify it here with your
 * provider, before the card is authenticated and charged.
 */
export async function isHuman(_request, _captcha) {
  return true;
}
