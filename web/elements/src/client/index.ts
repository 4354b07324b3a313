// The client script: `window.BasisTheoryElements`, which the official packages load and call.
//
// It runs in the merchant's page and holds no secret. Nothing here protects a value; the frames do.

import { type ElementType, MOUNTABLE_TYPES } from "../messages/protocol";
import { Coordinator } from "./coordinator";
import { getDeviceInfo } from "./device";
import { Element, findMounted } from "./element";
import { BasisTheoryConfigurationError } from "./errors";
import type { Options } from "./options";
import { hasElement } from "./payload";
import { services } from "./services";

/** Keys of servers must not reach a URL, nor a browser at all. */
const PRIVATE_KEY = /^key_[a-z]+_[a-z0-9]+_(pvt|mgt|prv|mgmt)_/;
/** Used when the script is loaded by a tag of its own, before `init`. */
const SCRIPT_URL = (document.currentScript as HTMLScriptElement | null)?.src;

const coordinators = new Map<string, Coordinator>();
let current: Coordinator | undefined;

function coordinator(): Coordinator {
  if (!current) {
    throw new BasisTheoryConfigurationError("Basis Theory Elements is not initialized: call init first");
  }
  return current;
}

/** The eight later parameters of the packages choose servers and telemetry of the hosted service; only `debug` applies. */
async function init(apiKey?: string, baseUrl?: string, ...rest: unknown[]): Promise<typeof elements> {
  if (!apiKey) {
    throw new Error("API key is required");
  }
  if (PRIVATE_KEY.test(apiKey)) {
    throw new BasisTheoryConfigurationError("Use the key of a public application in a browser");
  }
  const base = baseUrl ?? (SCRIPT_URL ? new URL("../hosted-elements/", SCRIPT_URL).href : undefined);
  if (!base) {
    throw new BasisTheoryConfigurationError("The URL of the elements is required");
  }
  const settings = { apiKey, baseUrl: base.endsWith("/") ? base : `${base}/`, debug: rest[3] === true };
  const name = JSON.stringify(settings);
  current = coordinators.get(name) ?? new Coordinator(settings);
  coordinators.set(name, current);
  return elements;
}

function createElement(type: ElementType, options: Options = {}): Element {
  if (!MOUNTABLE_TYPES.includes(type)) {
    throw new Error(`Unknown element type: ${String(type)}`);
  }
  return new Element(type, options ?? {}, coordinator());
}

const elements = {
  init,
  createElement,
  hasElement: (payload: unknown) => hasElement(payload),
  getElement: findMounted,
  device: { getDeviceInfo },
  ...services(coordinator),
};

declare global {
  interface Window {
    BasisTheoryElements?: typeof elements;
  }
}

window.BasisTheoryElements = elements;
