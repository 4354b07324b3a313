// Runs before everything else in the page, as an attacker's script could: records all that reaches the page.

window.seen = [];
const see = (kind, value) => {
  try {
    window.seen.push(`${kind} ${JSON.stringify(value, (_, item) => (item instanceof Error ? { ...item, message: item.message, stack: item.stack } : item))}`);
  } catch (error) {
    window.seen.push(`${kind} ${error}`);
  }
};
window.see = see;

window.addEventListener("message", (event) => see("message", event.data), true);

// Every port that the page ever gets to see, and everything that arrives on one.
window.ports = [];
const { set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
Object.defineProperty(MessagePort.prototype, "onmessage", {
  set(handler) {
    window.ports.push(this);
    set.call(this, handler && ((event) => {
      see("port", event.data);
      handler(event);
    }));
  },
});
const post = MessagePort.prototype.postMessage;
MessagePort.prototype.postMessage = function postMessage(data, ...rest) {
  see("sent", data);
  return post.call(this, data, ...rest);
};
const NativeChannel = window.MessageChannel;
window.MessageChannel = class extends NativeChannel {
  constructor() {
    super();
    window.ports.push(super.port1, super.port2);
  }
};
for (const method of ["log", "info", "warn", "error", "debug"]) {
  const write = console[method];
  console[method] = (...args) => {
    see("console", args.map(String));
    write.apply(console, args);
  };
}
const nativeFetch = window.fetch;
window.fetch = async (...args) => {
  const response = await nativeFetch(...args);
  response.clone().text().then((text) => see("fetch", text), () => {});
  return response;
};

// What tests use.
window.results = {};
window.elements = {};
window.events = [];

window.start = async (options = {}) => {
  window.bt = await window.basistheory(window.settings.publicKey, {
    customDomain: window.settings.ELEMENTS,
    disableTelemetry: true,
    ...options,
  });
  return Object.keys(window.bt);
};

/** Creates and mounts an element, and records its events. */
window.add = async (name, type, options = {}, target) => {
  const container = document.createElement("div");
  container.id = `box-${name}`;
  container.className = "field";
  (target ?? document.getElementById("fields")).append(container);
  const element = window.bt.createElement(type, { ...(type === "card" ? {} : { targetId: name }), ...options });
  window.elements[name] = element;
  for (const event of ["ready", "change", "focus", "blur", "keydown", "click", "copy"]) {
    element.on(event, (detail) => {
      see("event", detail);
      window.events.push({ name, ...detail });
    });
  }
  await element.mount(`#box-${name}`);
};

/** Calls a function of the page and records what came back, whichever way. */
window.attemptCall = async (call) => {
  try {
    const value = await call();
    see("result", value);
    return { value };
  } catch (error) {
    const { name, message, status, data, details, validation } = error;
    see("error", { name, message, status, data, details, validation });
    return { error: { name, message, status, data, details, validation } };
  }
};
