// What a browser says about its device. Computed in the page, on request, and sent nowhere.

type Hints = { brands?: { brand: string; version: string }[]; mobile?: boolean; platform?: string };

export function getDeviceInfo(options: { includeCanvasHash?: boolean } = {}): Record<string, unknown> {
  const agent = navigator as Navigator & {
    userAgentData?: Hints;
    deviceMemory?: number;
    connection?: Record<string, unknown>;
  };
  const { userAgentData: hints, connection } = agent;
  const [webglVendor, webglRenderer] = graphics();
  return {
    uaBrands: hints?.brands?.map(({ brand, version }) => ({ brand, version })),
    uaMobile: hints?.mobile,
    uaPlatform: hints?.platform,
    languages: [...navigator.languages],
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    cookiesEnabled: navigator.cookieEnabled,
    localStorageEnabled: isAvailable(() => localStorage),
    sessionStorageEnabled: isAvailable(() => sessionStorage),
    platform: navigator.platform,
    hardwareConcurrency: navigator.hardwareConcurrency,
    deviceMemoryGb: agent.deviceMemory ?? null,
    screenWidth: screen.width,
    screenHeight: screen.height,
    screenAvailWidth: screen.availWidth,
    screenAvailHeight: screen.availHeight,
    innerWidth,
    innerHeight,
    devicePixelRatio,
    maxTouchPoints: navigator.maxTouchPoints,
    plugins: Array.from(navigator.plugins, ({ name }) => name),
    mimeTypes: Array.from(navigator.mimeTypes, ({ type }) => type),
    webdriver: navigator.webdriver,
    suspectedHeadless: navigator.webdriver || navigator.languages.length === 0,
    webglVendor,
    webglRenderer,
    canvasHash: options.includeCanvasHash ? canvasHash() : undefined,
    network: connection && {
      downlink: connection.downlink,
      effectiveType: connection.effectiveType,
      rtt: connection.rtt,
      saveData: connection.saveData,
    },
  };
}

function isAvailable(storage: () => Storage): boolean {
  try {
    return storage() !== null;
  } catch {
    return false;
  }
}

function graphics(): [string?, string?] {
  try {
    const gl = document.createElement("canvas").getContext("webgl");
    const names = gl?.getExtension("WEBGL_debug_renderer_info");
    return gl && names
      ? [gl.getParameter(names.UNMASKED_VENDOR_WEBGL), gl.getParameter(names.UNMASKED_RENDERER_WEBGL)]
      : [];
  } catch {
    return [];
  }
}

/** FNV-1a of a drawing, which differs between graphics stacks. */
function canvasHash(): string | undefined {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  context?.fillText("Cloakroom \u{1F9E5}", 2, 12);
  let hash = 0x811c9dc5;
  for (const letter of context ? canvas.toDataURL() : "") {
    hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  }
  return context ? hash.toString(16).padStart(8, "0") : undefined;
}
