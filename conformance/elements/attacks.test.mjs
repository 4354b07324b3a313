// Attacks from the hosting page. Every attack is a test that fails if the page learns the card.

import assert from "node:assert/strict";

import { attemptIn, CARD, input, payWith, SPLIT, suite, type, withCheckout, withPage } from "./checkout.mjs";
import { EVIL, SHOP } from "./sites.mjs";
import { attempt, management, vault } from "./vault.mjs";

const SECRET = "zebra-crossing-99";
/** Anything that contains nine digits of the number in a row, the code by itself, or the text. */
const windows = Array.from({ length: CARD.number.length - 8 }, (_, index) => CARD.number.slice(index, index + 9));
const reversed = [...CARD.number].reverse().join("");

/** What of the card is in a text, in any grouping of digits. */
function found(text) {
  const digits = text.replace(/[\s"\\,:[\]{}._-]/g, "");
  const hits = windows.filter((part) => digits.includes(part));
  if (digits.includes(reversed)) {
    hits.push("reversed");
  }
  if (/(^|[^0-9a-fA-F.])739([^0-9a-fA-F]|$)/.test(text)) {
    hits.push("code");
  }
  if (text.includes(SECRET)) {
    hits.push("text");
  }
  return hits;
}

const FIELDS = { ...SPLIT, text: ["text"], copy: ["copyButton"] };

/** A page of an attacker, in which a cardholder has typed everything. */
function withVictim(body) {
  const settings = {
    path: "/unguarded",
    options: { permissions: ["clipboard-read", "clipboard-write"] },
    // Attacks cause complaints of the browser; they are not what is tested.
    expected: [""],
  };
  return withCheckout(FIELDS, settings, async (page) => {
    await payWith(page);
    await type(page, "text", SECRET);
    await page.waitForFunction(() => !window.elements.text.metadata.empty);
    await page.addScriptTag({ url: "/attacks.js" });
    await page.evaluate((keyId) => {
      window.keyId = keyId;
      window.seen.length = 0;
    }, (await management.keys.create({})).keyId);
    await body(page);
  });
}

/** Runs an attack and returns all that the attacker knows afterwards. */
async function loot(page, name) {
  suite.sites.received.length = 0;
  const result = await page.evaluate(
    ([name, secrets]) => Promise.resolve(window.attacks[name](secrets)).then((loot) => JSON.stringify(loot) ?? "", (error) => `${error}`),
    [name, [CARD.number, "4539 1488 0343 6467", CARD.code, SECRET]],
  );
  // What the page sends are guesses of the attacker, not loot.
  const seen = await page.evaluate(() => window.seen.splice(0).filter((line) => !line.startsWith("sent")).join("\n"));
  return [result, seen, JSON.stringify(suite.sites.received)].join("\n");
}

const ENDING = [
  "a field that moves to another place", "javascript URLs in a frame", "srcdoc over a field",
  "a field that navigates away and back", "a coordinator that is replaced",
];

attempt("detector", "finds a number, a code and a text in what a page receives", async () => {
  assert.ok(found(`{"a":"${CARD.number}"}`).length > 0);
  assert.ok(found("4539 1488 0343 6467").length > 0);
  assert.ok(found("x 453914880 y").length > 0);
  assert.ok(found('{"cvc":"739"}').includes("code"));
  assert.ok(found(reversed).includes("reversed"));
  assert.ok(found(SECRET).includes("text"));
  assert.deepEqual(found('{"cardBin":"45391488","cardLast4":"6467","id":"0739abcd-1234","at":"10:00:00.739Z"}'), []);
  // The page itself can be robbed: an input of its own is found by the same means.
  await withVictim(async (page) => {
    await page.evaluate((number) => {
      document.body.insertAdjacentHTML("beforeend", "<input id='own'>");
      document.getElementById("own").value = number;
    }, CARD.number);
    assert.ok(found(await loot(page, "inputs of the page")).length > 0);
  });
});

const NAMES = await attackNames();

async function attackNames() {
  const { readFileSync } = await import("node:fs");
  const source = readFileSync(new URL("shop/attacks.js", import.meta.url), "utf8");
  return [...source.matchAll(/^ {4}"([^"]+)": (?:async )?\(/gm)].map(([, name]) => name);
}

attempt("attacks", "there are at least 60, and every one is run", async () => {
  assert.ok(NAMES.length >= 60, String(NAMES.length));
  await withVictim(async (page) => {
    assert.deepEqual(await page.evaluate(() => Object.keys(window.attacks)), NAMES);
    const failures = [];
    for (const name of NAMES.filter((name) => !ENDING.includes(name))) {
      const hits = found(await loot(page, name));
      if (hits.length > 0) {
        failures.push(`${name}: ${hits.join()}`);
      }
    }
    assert.deepEqual(failures, []);
    // The attacks did not end the fields: the cardholder can still pay.
    const { value, error } = await attemptIn(page, "() => bt.tokens.create({ type: 'card_number', data: elements.number })");
    assert.equal(error, undefined);
    assert.equal((await vault.tokens.get(value.id)).data, CARD.number);
    const compared = await page.evaluate(() => window.compare);
    const [before, after] = await Promise.all(compared.map((id) => vault.tokens.get(id)));
    assert.deepEqual([before.data, after.data], [SECRET, SECRET], "a transform changed after the text was typed");
  });
  console.log(`${NAMES.length} attacks by scripts, 0 succeeded`);
});

for (const name of ENDING) {
  attempt("attack", name, () => withVictim(async (page) => {
    assert.deepEqual(found(await loot(page, name)), []);
  }));
}

attempt("attack", "listening to every key, input, clipboard and drag event while a card is typed", async () => {
  const settings = { path: "/unguarded", expected: [""] };
  await withCheckout({ ...SPLIT, text: ["text"] }, settings, async (page) => {
    await page.evaluate(() => {
      for (const target of [window, document, document.body, ...document.querySelectorAll("iframe")]) {
        for (const name of Object.keys(window).concat(Object.keys(HTMLElement.prototype)).filter((key) => key.startsWith("on")).map((key) => key.slice(2))) {
          target.addEventListener(name, (event) => {
            window.seen.push(["heard", event.type, event.key, event.data, event.code, event.clipboardData?.getData("text"), event.dataTransfer?.getData("text")].join(" "));
          }, true);
        }
      }
    });
    await payWith(page);
    const seen = await page.evaluate(() => window.seen.join("\n"));
    assert.deepEqual(found(seen), []);
    assert.ok(!/heard (key|input|beforeinput|composition)/.test(seen), seen);
    // No event tells how many digits were typed, either: facts change a few times only.
    const changes = await page.evaluate(() => window.events.filter(({ name, type }) => name === "number" && type === "change").length);
    assert.ok(changes <= 4, String(changes));
  });
});

attempt("attack", "dragging the number out of its field", async () => {
  await withVictim(async (page) => {
    await page.evaluate(() => {
      document.body.insertAdjacentHTML("beforeend", "<textarea id='drop' style='width:400px;height:120px'></textarea>");
      for (const name of ["drop", "dragover", "dragenter"]) {
        document.addEventListener(name, (event) => {
          event.preventDefault();
          window.seen.push(`${name} ${event.dataTransfer.getData("text")}`);
        });
      }
    });
    for (const name of ["number", "text"]) {
      // Debuggers cannot drag text between frames in every version; what starts a drag is refused in any case.
      const starts = await input(page, name).evaluate((node) =>
        node.dispatchEvent(new DragEvent("dragstart", { bubbles: true, cancelable: true }))
      );
      assert.equal(starts, false, name);
      await input(page, name).evaluate((node) => node.select());
      const from = await input(page, name).boundingBox();
      const to = await page.locator("#drop").boundingBox();
      await page.mouse.move(from.x + 20, from.y + from.height / 2);
      await page.mouse.down();
      await page.mouse.move(to.x + 50, to.y + 20, { steps: 10 });
      await page.mouse.up();
    }
    const loot = await page.evaluate(() => window.seen.join("\n") + document.getElementById("drop").value);
    assert.deepEqual(found(loot), []);
  });
});

for (const keys of ["Control+C", "Control+X"]) {
  attempt("attack", `reading the clipboard after ${keys} in a field`, async () => {
    await withVictim(async (page) => {
      for (const name of ["number", "code"]) {
        await input(page, name).click();
        await page.keyboard.press("Control+A");
        await page.keyboard.press(keys);
      }
      await page.locator("h1").click();
      const clipboard = await page.evaluate(() => navigator.clipboard.readText());
      assert.deepEqual(found(clipboard), []);
      assert.equal(await page.evaluate(() => window.elements.number.metadata.complete), true);
    });
  });
}

attempt("attack", "a copy button that the cardholder cannot see", async () => {
  await withVictim(async (page) => {
    await page.evaluate(() => {
      window.elements.copy.setValueRef(window.elements.number);
      document.querySelector("#box-copy").style.opacity = "0.01";
    });
    // The frame notices within a tenth of a second; the attacker gains nothing by waiting.
    await page.waitForTimeout(600);
    const box = await page.locator("#box-copy iframe").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForFunction(() => window.events.some(({ name, type }) => name === "copy" && type === "click"));
    await page.locator("h1").click();
    assert.deepEqual(found(await page.evaluate(() => navigator.clipboard.readText())), []);
    assert.equal(await page.evaluate(() => window.events.some(({ type }) => type === "copy")), false);
  });
});

attempt("attack", "a site that the tenant does not list", async () => {
  const tenant = await management.tenants.self.get();
  const set = (settings) => management.tenants.self.update({ name: tenant.name, settings });
  await set({ elements_sites: SHOP });
  try {
    // Nodes cache the settings of a tenant for up to five seconds.
    const deadline = Date.now() + 20_000;
    let outcome;
    do {
      const context = await suite.browser.newContext({ ignoreHTTPSErrors: true });
      const page = await context.newPage();
      await page.goto(`https://${EVIL}/page`);
      outcome = await page.evaluate(async () => {
        for (const src of ["settings.js", "watch.js", "web-elements.js"]) {
          await new Promise((resolve) => {
            const script = document.createElement("script");
            script.src = `https://shop.example/${src}`;
            script.onload = resolve;
            document.head.append(script);
          });
        }
        await window.start();
        return window.add("number", "cardNumber").then(() => "mounted", (error) => error.message);
      });
      await context.close();
    } while (outcome === "mounted" && Date.now() < deadline);
    assert.match(outcome, /elements_sites does not list this site/);
    await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
      assert.equal(await page.evaluate(() => window.elements.number.mounted), true);
    });
  } finally {
    await set({ elements_sites: "" });
  }
});

attempt("canary", "nothing that a page receives in a whole purchase contains the card", async () => {
  await withPage("/", {}, async (page) => {
    await page.evaluate(() => window.start({ debug: true }));
    for (const [name, [kind]] of Object.entries({ ...SPLIT, text: ["text"], card: ["card"] })) {
      await page.evaluate(([name, kind]) => window.add(name, kind, { validateOnChange: true }), [name, kind]);
    }
    await payWith(page);
    await type(page, "text", SECRET);
    await type(page, "card", CARD.number, "cardNumber");
    await type(page, "card", CARD.date, "expirationDate");
    await type(page, "card", CARD.code, "cvc");
    const data = "{ number: elements.number, expiration_month: elements.date.month(), expiration_year: elements.date.year(), cvc: elements.code }";
    for (const call of [
      `() => bt.tokens.create({ type: 'card', data: ${data} })`,
      "() => bt.tokens.create({ type: 'card', data: elements.card })",
      "() => bt.tokens.create({ type: 'token', data: elements.text })",
      `() => bt.tokenize({ a: { type: 'card', data: ${data} }, b: elements.text })`,
      `() => bt.tokenIntents.create({ type: 'card', data: ${data} })`,
    ]) {
      const { error } = await attemptIn(page, call);
      assert.equal(error, undefined, call);
    }
    await page.evaluate(() => Object.values(window.elements).forEach((element) => element.unmount()));
    const seen = await page.evaluate(() => window.seen.join("\n"));
    assert.ok(seen.length > 5_000);
    assert.deepEqual(found(seen), []);
  });
});
