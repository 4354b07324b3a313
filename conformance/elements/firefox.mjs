// Debian's Firefox, over WebDriver BiDi. A CONNECT proxy leads all names of the tests to this machine.

import { existsSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";

import puppeteer from "puppeteer-core";

import { HOSTS } from "./sites.mjs";

const PROGRAM = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
export const isInstalled = existsSync(PROGRAM);

export async function startFirefox(port) {
  const proxy = createServer();
  proxy.on("connect", ({ url }, client) => {
    if (!HOSTS.includes(url.split(":")[0])) {
      client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
      return;
    }
    const upstream = connect(port, "127.0.0.1", () => client.write("HTTP/1.1 200 OK\r\n\r\n"));
    upstream.pipe(client).pipe(upstream);
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: PROGRAM,
    acceptInsecureCerts: true,
    extraPrefsFirefox: {
      "network.proxy.type": 1,
      "network.proxy.ssl": "127.0.0.1",
      "network.proxy.ssl_port": proxy.address().port,
    },
  });
  return {
    newPage: () => browser.newPage(),
    async close() {
      await browser.close();
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}
