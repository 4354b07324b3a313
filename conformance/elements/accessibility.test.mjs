// Accessibility, languages, right-to-left text, and pictures for developers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { picture } from "./chromium.mjs";
import { changed, input, inside, payWith, SPLIT, suite, type, typeInto, withCheckout } from "./checkout.mjs";
import { attempt } from "./vault.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const ALL = { ...SPLIT, card: ["card"], name: ["text", { "aria-label": "Name" }], copy: ["copyButton", { text: "Copy" }] };

/** Violations of a frame that matter. The debugger runs axe, since the frame's policy allows no other script. */
async function violations(frame) {
  await frame.evaluate(AXE);
  const { violations } = await frame.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

attempt("accessibility", "axe finds nothing serious in any field: empty, invalid, complete, co-badged", async () => {
  const options = { coBadgedSupport: ["cartes-bancaires"] };
  await withCheckout({ ...ALL, number: ["cardNumber", options] }, {}, async (page) => {
    const frames = page.frames().filter((frame) => frame.url().includes("field.html"));
    assert.equal(frames.length, 6);
    const check = async (state) => {
      for (const frame of frames) {
        assert.deepEqual(await violations(frame), [], state);
      }
    };
    await check("empty");
    await page.evaluate(() => Object.values(window.elements).forEach((element) => element.validate()));
    await check("invalid");
    await payWith(page, { number: "4000002500001001", date: "1231", code: "123" });
    await inside(page, "number").getByRole("radio", { name: "Visa" }).waitFor();
    await check("complete");
    await picture(page, "fields-complete");
  });
});

attempt("accessibility", "labels, errors that are announced, and the order of the keyboard", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await inside(page, "number").getByLabel("Card number", { exact: true }).waitFor();
    await inside(page, "date").getByLabel("Expiration date", { exact: true }).waitFor();
    await inside(page, "code").getByLabel("Security code", { exact: true }).waitFor();
    await type(page, "number", "4242");
    await page.keyboard.press("Tab");
    await inside(page, "number").getByRole("alert").getByText("Card number is incomplete.").waitFor();
    assert.equal(await input(page, "number").getAttribute("aria-invalid"), "true");
    // Tab went on to the next field.
    await typeInto(page, inside(page, "date"), "1231");
    await changed(page, "date", { complete: true });
    await page.keyboard.press("Shift+Tab");
    await inside(page, "number").locator("input:focus").waitFor();
    await page.keyboard.press("End");
    await page.keyboard.type("424242424242");
    await changed(page, "number", { complete: true });
    assert.equal(await inside(page, "number").getByRole("alert").textContent(), "");
    await picture(page, "fields-keyboard");
  });
});

const LANGUAGES = [
  ["de", "Kartennummer", "Kartennummer ist unvollständig."],
  ["fr-CA", "Numéro de carte", "Numéro de carte : valeur incomplète."],
  ["es", "Número de tarjeta", "Número de tarjeta: valor incompleto."],
  ["pt-BR", "Número do cartão", "Número do cartão: valor incompleto."],
  ["ja", "Card number", "Card number is incomplete."],
];

attempt("localization", "labels and errors in the language of the page", async () => {
  await withCheckout({}, {}, async (page) => {
    for (const [language, label, error] of LANGUAGES) {
      await page.evaluate(async (language) => {
        document.documentElement.lang = language;
        document.getElementById("fields").innerHTML = "";
        await window.add("number", "cardNumber");
        window.elements.number.validate();
      }, language);
      await inside(page, "number").getByLabel(label, { exact: true }).waitFor();
      await inside(page, "number").getByRole("alert").getByText(error).waitFor();
    }
  });
});

attempt("right-to-left", "numbers stay left to right, aligned to the right", async () => {
  await withCheckout({}, {}, async (page) => {
    await page.evaluate(() => (document.documentElement.dir = "rtl"));
    await page.evaluate(async () => {
      await window.add("number", "cardNumber");
      await window.add("date", "cardExpirationDate");
      await window.add("code", "cardVerificationCode");
    });
    await payWith(page);
    const found = await input(page, "number").evaluate((node) => {
      const { direction, textAlign } = getComputedStyle(node);
      return { direction, textAlign, page: document.documentElement.dir, value: node.value };
    });
    assert.deepEqual(found, { direction: "ltr", textAlign: "right", page: "rtl", value: "4539 1488 0343 6467" });
    await picture(page, "fields-right-to-left");
  });
});

/** The color at the right end of a field, where there is no text. */
async function background(page, name) {
  const picture = await page.locator(`#box-${name} iframe`).screenshot();
  const blank = await suite.browser.newPage();
  const color = await blank.evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return [...context.getImageData(image.width - 4, Math.floor(image.height / 2), 1, 1).data].slice(0, 3);
  }, `data:image/png;base64,${picture.toString("base64")}`);
  await blank.close();
  return color;
}

for (const [name, options] of [
  ["phone", { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true }],
  ["dark", { viewport: { width: 900, height: 700 }, colorScheme: "dark" }],
]) {
  attempt("pictures", `${name}: fields fit their containers`, async () => {
    await withCheckout({ card: ["card"], ...SPLIT, copy: ["copyButton", { text: "Copy number" }] }, { options }, async (page) => {
      if (name === "dark") {
        await page.evaluate(() => {
          const scheme = Object.assign(document.createElement("meta"), { name: "color-scheme", content: "light dark" });
          document.head.append(scheme);
          document.body.style.cssText += ";background:#111;color:#eee";
          return Promise.all(["card", "number", "date", "code"].map((name) =>
            window.elements[name].update({ style: { base: { color: "#eeeeee", "::placeholder": { color: "#9ca3af" } } } })
          ));
        });
      }
      await payWith(page);
      await type(page, "card", "4242", "cardNumber");
      for (const field of ["card", "number", "date", "code"]) {
        const [outer, frame] = await page.evaluate((field) => {
          const box = document.getElementById(`box-${field}`);
          return [box.getBoundingClientRect(), box.querySelector("iframe").getBoundingClientRect()].map(({ width, height }) => ({ width, height }));
        }, field);
        assert.ok(frame.width <= outer.width && frame.height >= 20 && frame.height <= 90, JSON.stringify({ field, outer, frame }));
      }
      if (name === "dark") {
        assert.deepEqual(await background(page, "number"), [17, 17, 17], "the page shines through the frame");
      }
      const modes = await inside(page, "number").locator("input.input").getAttribute("inputmode");
      assert.equal(modes, "numeric");
      await picture(page, `fields-${name}`);
    });
  });
}
