// The helper pages by themselves: whom they listen to, what they open, and what they hand on.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before } from "node:test";

import { startBrowser, watched } from "./chromium.mjs";
import { attempt, baseUrl } from "./vault.mjs";

const HELPERS = [
  {
    path: "/pages/method.html",
    order: (address) => ({ type: "startMethod", threeDSMethodURL: address, threeDSMethodData: "e30" }),
    field: "threeDSMethodData",
    news: { type: "method", isCompleted: true, id: "1" },
    foreign: { type: "challenge", isCompleted: true, id: "1" },
  },
  {
    path: "/pages/challenge.html",
    order: (address) => ({ type: "startChallenge", acsURL: address, creq: "e30" }),
    field: "creq",
    news: { type: "challenge", isCompleted: true, id: "1", authenticationStatus: "successful" },
    foreign: { type: "method", isCompleted: true, id: "1" },
  },
];
/** Long enough for a message to pass through two windows, many times over. */
const A_WHILE_MS = 500;

let browser;
let stranger;
/** What was posted to the issuer's page. */
let posted = [];

before(async () => {
  browser = await startBrowser();
  stranger = createServer(async (request, response) => {
    if (request.method === "POST") {
      posted.push(Buffer.concat(await request.toArray()).toString("utf8"));
    }
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end('<!doctype html><link rel="icon" href="data:,"><p>Another site.</p>');
  });
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
});
after(async () => {
  await browser?.close();
  stranger?.closeAllConnections();
  stranger?.close();
});

const site = (path) => `http://127.0.0.1:${stranger.address().port}${path}`;

/** A page of another site that frames the helper page and a page of its own, and notes what it hears. */
async function around(page, path) {
  posted = [];
  await page.goto(site("/"));
  await page.evaluate(async (sources) => {
    window.heard = [];
    window.addEventListener("message", ({ data }) => window.heard.push(data));
    for (const src of sources) {
      const frame = document.createElement("iframe");
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      frame.src = src;
      document.body.append(frame);
      await loaded;
    }
  }, [baseUrl + path, site("/beside")]);
}

const tell = (page, message) =>
  page.evaluate((message) => window.frames[0].postMessage(message, "*"), message);
const heard = (page) => page.evaluate(() => window.heard);
const issuerOf = (page) => page.frame({ url: site("/issuer") });

async function opened(page) {
  await page.frameLocator("iframe >> nth=0").frameLocator("iframe").getByText("Another site.").waitFor({ state: "attached" });
  return issuerOf(page);
}

for (const { path, order, field, news, foreign } of HELPERS) {
  attempt(path, "posts what it is given, once, and hands on the issuer's news", async () => {
    await watched(browser, {}, async (page) => {
      await around(page, path);
      await tell(page, order(site("/issuer")));
      const issuer = await opened(page);
      await tell(page, order(site("/issuer")));
      await issuer.evaluate((news) => window.parent.postMessage(news, "*"), news);
      await page.waitForFunction(() => window.heard.length > 0);
      await page.waitForTimeout(A_WHILE_MS);

      assert.deepEqual(await heard(page), [news]);
      assert.deepEqual(posted, [`${field}=e30`]);
    });
  });

  attempt(path, "hands on nothing that others say", async () => {
    await watched(browser, {}, async (page) => {
      await around(page, path);
      await tell(page, order(site("/issuer")));
      const issuer = await opened(page);
      const beside = page.frame({ url: site("/beside") });
      await beside.evaluate((news) => window.parent.frames[0].postMessage(news, "*"), news);
      await tell(page, news);
      for (const other of [foreign, { ...news, type: "error" }, null, "text"]) {
        await issuer.evaluate((other) => window.parent.postMessage(other, "*"), other);
      }
      await page.waitForTimeout(A_WHILE_MS);

      assert.deepEqual(await heard(page), []);
    });
  });

  attempt(path, "starts for nobody but the page around it", async () => {
    await watched(browser, {}, async (page) => {
      await around(page, path);
      const beside = page.frame({ url: site("/beside") });
      const message = order(site("/issuer"));
      await beside.evaluate((message) => window.parent.frames[0].postMessage(message, "*"), message);
      await page.waitForTimeout(A_WHILE_MS);
      assert.deepEqual(posted, []);

      await page.goto(baseUrl + path);
      await page.evaluate((message) => window.postMessage(message, "*"), message);
      await page.waitForTimeout(A_WHILE_MS);
      assert.deepEqual(posted, []);
    });
  });

  attempt(path, "opens addresses of pages only, and says so otherwise", async () => {
    const refused = ["javascript:parent.parent.heard.push('run')", "data:text/html,x", "", undefined];
    await watched(browser, {}, async (page) => {
      for (const address of refused) {
        await around(page, path);
        await tell(page, order(address));
        await page.waitForFunction(() => window.heard.length > 0);
        const [{ type, isCompleted, id, details }] = await heard(page);
        // In the shape that the official package takes for an error.
        assert.deepEqual([type, isCompleted, id, typeof details], ["error", false, "", "string"]);
        assert.equal(page.frames().length, 3, "a frame was opened");
      }
    });
  });
}
