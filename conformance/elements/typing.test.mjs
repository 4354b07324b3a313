// Typing: brands, lengths, grouping, dates, codes, masks, and where the caret stays.

import assert from "node:assert/strict";

import { changed, input, SPLIT, suite, type, withCheckout } from "./checkout.mjs";
import { NUMBERS } from "./numbers.mjs";
import { attempt } from "./vault.mjs";

attempt("cardNumber", "recognizes, groups and completes numbers of 12 brands", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    for (const [brand, number, shown, size] of NUMBERS) {
      await page.evaluate(() => window.elements.number.clear());
      await type(page, "number", number);
      await page.keyboard.press("Tab");
      const event = await changed(page, "number", { complete: true, cardBrand: brand });
      assert.equal(await input(page, "number").inputValue(), shown);
      const facts = { last4: event.cardLast4, bin: event.cardBin, errors: event.errors };
      const bin = number.slice(0, number.length >= 16 ? 8 : 6);
      assert.deepEqual(facts, { last4: number.slice(-4), bin, errors: [] }, number);

      await page.evaluate((brand) => window.elements.code.update({ cardBrand: brand }), brand);
      await page.evaluate(() => window.elements.code.clear());
      await type(page, "code", "12345");
      assert.equal((await input(page, "code").inputValue()).length, size, brand);
    }
  });
});

attempt("cardNumber", "is incomplete or invalid as it is typed, and says so when left", async () => {
  await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
    await type(page, "number", "4242");
    await changed(page, "number", { empty: false, complete: false, cardBrand: "visa", errors: [] });
    await input(page, "number").blur();
    await changed(page, "number", { errors: [{ targetId: "number", type: "incomplete" }] });
    await type(page, "number", "424242424241");
    await input(page, "number").blur();
    await changed(page, "number", { valid: false, errors: [{ targetId: "number", type: "invalid" }] });
    assert.equal(await input(page, "number").getAttribute("aria-invalid"), "true");
  });
});

attempt("cardNumber", "does not show digits of the middle while a long number is typed", async () => {
  await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
    // Its first 12 digits are a complete Maestro number too.
    const number = "6759000012715678";
    await type(page, "number", number);
    const shown = await page.evaluate(() => window.events.filter((event) => event.cardLast4).map((event) => event.cardLast4));
    assert.deepEqual(shown.filter((last4) => last4 !== number.slice(-4)), []);
  });
});

attempt("cardNumber", "keeps the caret while digits are inserted, removed and pasted in the middle", async () => {
  await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
    const number = input(page, "number");
    await type(page, "number", "42424242424242");
    await number.evaluate((node) => node.setSelectionRange(4, 4));
    await page.keyboard.type("99");
    assert.equal(await number.inputValue(), "4242 9942 4242 4242");
    assert.equal(await number.evaluate((node) => node.selectionStart), 7);
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Backspace");
    assert.equal(await number.inputValue(), "4242 4242 4242 42");
    await page.evaluate(() => window.elements.number.clear());
    await number.evaluate((node) => {
      node.value = "4242-4242-4242-4242";
      node.dispatchEvent(new Event("input", { bubbles: true }));
    });
    assert.equal(await number.inputValue(), "4242 4242 4242 4242");
    await page.evaluate(() => window.elements.number.clear());
    // Arabic-Indic digits.
    await number.evaluate((node) => {
      node.value = "\u0664\u0662\u0664\u0662";
      node.dispatchEvent(new Event("input", { bubbles: true }));
    });
    assert.equal(await number.inputValue(), "4242");
  });
});

attempt("cardExpirationDate", "accepts months of one digit, separators, four-digit years, and rejects the past", async () => {
  await withCheckout({ date: ["cardExpirationDate"] }, {}, async (page) => {
    const cases = [
      ["1231", "12/31", true, []],
      ["331", "03/31", true, []],
      ["3/31", "03/31", true, []],
      ["1", "1", false, "incomplete"],
      ["1399", "13/99", false, "invalid"],
      ["0120", "01/20", false, "invalid"],
      ["0199", "01/99", false, "invalid"],
    ];
    for (const [typed, shown, complete, error] of cases) {
      await page.evaluate(() => {
        window.elements.date.clear();
        window.events.length = 0;
      });
      await type(page, "date", typed);
      await input(page, "date").blur();
      const errors = error.length ? [{ targetId: "date", type: error }] : [];
      await changed(page, "date", { complete, errors });
      assert.equal(await input(page, "date").inputValue(), shown, typed);
    }
    await page.evaluate(() => window.elements.date.clear());
    await input(page, "date").evaluate((node) => {
      node.value = "12/2031";
      node.dispatchEvent(new Event("input", { bubbles: true }));
    });
    assert.equal(await input(page, "date").inputValue(), "12/31");
    // A deleted slash deletes the digit before it, or it would come back for ever.
    await page.evaluate(() => window.elements.date.clear());
    await type(page, "date", "12");
    await page.keyboard.press("Backspace");
    assert.equal(await input(page, "date").inputValue(), "1");
  });
});

attempt("cardExpirationDate", "maxElapsedExpirationYear and showSpacing", async () => {
  const lastYear = String(new Date().getFullYear() - 1).slice(-2);
  await withCheckout({ date: ["cardExpirationDate", { maxElapsedExpirationYear: 2, showSpacing: true }] }, {}, async (page) => {
    await type(page, "date", `12${lastYear}`);
    await changed(page, "date", { complete: true });
    assert.equal(await input(page, "date").inputValue(), `12 / ${lastYear}`);
  });
});

attempt("cardNumber", "value of the page does not replace a typed one", async () => {
  await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
    await type(page, "number", "4242424242424242");
    const set = (value) => page.evaluate((text) => window.elements.number.update({ value: text }), value);
    await set("4111111111111111");
    assert.equal(await input(page, "number").inputValue(), "4242 4242 4242 4242");
    await page.evaluate(() => window.elements.number.clear());
    await set("4000056655665556");
    assert.equal(await input(page, "number").inputValue(), "4000 0566 5566 5556");
  });
});

attempt("cardExpirationDate", "filled in by a browser, also again", async () => {
  for (const showSpacing of [true, false]) {
    await withCheckout({ date: ["cardExpirationDate", { showSpacing }] }, {}, async (page) => {
      const shown = showSpacing ? "12 / 30" : "12/30";
      for (const filled of ["12/30", "1230", "12/30", "12 / 30", "12/2030", "2030-12", "1230"]) {
        await input(page, "date").evaluate((node, text) => {
          node.value = text;
          node.dispatchEvent(new Event("input", { bubbles: true }));
        }, filled);
        assert.equal(await input(page, "date").inputValue(), shown, filled);
      }
      await input(page, "date").press("End");
      await input(page, "date").press("Backspace");
      assert.equal(await input(page, "date").inputValue(), shown.slice(0, -1));
    });
  }
});

attempt("text", "mask, validation, transform, maxLength and password", async () => {
  const ssn = [{ regex: "\\d" }, { regex: "\\d" }, { regex: "\\d" }, "-", { regex: "\\d" }, { regex: "\\d" }];
  const elements = {
    masked: ["text", { mask: ssn }],
    checked: ["text", { validation: { regex: "^[a-c]+$" } }],
    short: ["text", { maxLength: 3 }],
    secret: ["text", { password: true }],
  };
  await withCheckout(elements, {}, async (page) => {
    await type(page, "masked", "12x345");
    await changed(page, "masked", { complete: true, maskSatisfied: true });
    assert.equal(await input(page, "masked").inputValue(), "123-45");
    await page.keyboard.press("Backspace");
    await changed(page, "masked", { complete: false, maskSatisfied: false });
    await type(page, "checked", "abcd");
    await changed(page, "checked", { valid: false, complete: false });
    await page.keyboard.press("Backspace");
    await changed(page, "checked", { valid: true, complete: true });
    await type(page, "short", "abcdef");
    assert.equal(await input(page, "short").inputValue(), "abc");
    assert.equal(await input(page, "secret").getAttribute("type"), "password");
  });
});

attempt("card", "three inputs in one frame, which advance and agree on the brand", async () => {
  await withCheckout({ card: ["card"] }, {}, async (page) => {
    await type(page, "card", "378282246310005", "cardNumber");
    // A full number moves on to the date, and a full date to the code.
    await page.keyboard.type("12311234");
    const event = await changed(page, "card", { complete: true, cardBrand: "american-express" });
    assert.equal(event.cardLast4, "0005");
    assert.equal(await input(page, "card", "cvc").inputValue(), "1234");
    assert.equal(await input(page, "card", "cvc").getAttribute("placeholder"), "CID");
  });
});

attempt("cardNumber", "cardTypes and skipLuhnValidation do not change what is complete", async () => {
  const house = { type: "house", niceType: "House", patterns: [7777], gaps: [4, 8, 12], lengths: [16], code: { name: "PIN", size: 3 } };
  await withCheckout({ number: ["cardNumber", { cardTypes: [house], skipLuhnValidation: true }] }, {}, async (page) => {
    await type(page, "number", "7777000000000000");
    await changed(page, "number", { complete: false, valid: false, cardBrand: "unknown" });
  });
});

attempt("cardNumber", "binLookup, co-badges, and the choice of a network", async () => {
  const options = { binLookup: true, coBadgedSupport: ["cartes-bancaires"] };
  await withCheckout({ number: ["cardNumber", options] }, {}, async (page) => {
    await type(page, "number", "4000002500001001");
    const event = await changed(page, "number", { complete: true, cardBrand: "visa" });
    assert.equal(event.selectedNetwork, undefined);
    const frame = page.frameLocator("#box-number iframe");
    await frame.getByRole("radio", { name: "Cartes Bancaires" }).check();
    const chosen = await changed(page, "number", { selectedNetwork: "cartes-bancaires" });
    assert.equal(chosen.binInfo.issuer.country, "FR");
    await page.evaluate(() => window.elements.number.clear());
    await frame.locator(".networks").waitFor({ state: "hidden" });
  });
  const lookups = suite.sites.requests.filter(({ pathname }) => pathname === "/enrichments/card-details");
  assert.ok(lookups.length >= 1);
});

attempt("cardNumber", "preSelectedNetworks chooses in advance", async () => {
  const options = { coBadgedSupport: ["cartes-bancaires"], preSelectedNetworks: ["cartes-bancaires"] };
  await withCheckout({ number: ["cardNumber", options] }, {}, async (page) => {
    await type(page, "number", "4000002500001001");
    const event = await changed(page, "number", { selectedNetwork: "cartes-bancaires" });
    assert.equal(event.binInfo, undefined);
  });
});
