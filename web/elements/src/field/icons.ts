// Icons: a plain badge for each card brand, and the copy symbol.

const SVG = "http://www.w3.org/2000/svg";

/** Background and short name of a brand's badge. Logos are trademarks; a badge names the brand without one. */
const BADGES: Record<string, [string, string]> = {
  "visa": ["#1a1f71", "VISA"],
  "mastercard": ["#b3001b", "MC"],
  "american-express": ["#0b5c8c", "AMEX"],
  "diners-club": ["#004b87", "DC"],
  "discover": ["#9a4200", "DISC"],
  "jcb": ["#0e4c96", "JCB"],
  "unionpay": ["#00605c", "UP"],
  "maestro": ["#7a1f8f", "MAES"],
  "elo": ["#1f1f1f", "ELO"],
  "mir": ["#0f6b3a", "MIR"],
  "hiper": ["#a8431e", "HIPER"],
  "hipercard": ["#8a1a1f", "HIPC"],
  "cartes-bancaires": ["#0a4d8c", "CB"],
  "bancontact": ["#005498", "BC"],
  "dankort": ["#9b1c1c", "DK"],
};

function node(name: string, attributes: Record<string, string>, text = ""): SVGElement {
  const created = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => created.setAttribute(key, value));
  created.textContent = text;
  return created;
}

export function brandIcon(): SVGElement {
  const icon = node("svg", { viewBox: "0 0 32 20", class: "icon", "aria-hidden": "true" });
  showBrand(icon, "unknown");
  return icon;
}

export function showBrand(icon: SVGElement, brand: string): void {
  const badge = Object.hasOwn(BADGES, brand) ? BADGES[brand] : undefined;
  const frame = node("rect", {
    x: "0.5", y: "0.5", width: "31", height: "19", rx: "3",
    fill: badge?.[0] ?? "none", stroke: badge?.[0] ?? "#9ca3af",
  });
  const inside = badge
    ? node("text", {
      x: "16", y: "13.5", "text-anchor": "middle", "font-size": badge[1].length > 4 ? "8" : "9",
      "font-weight": "700", "font-family": "system-ui, sans-serif", fill: "#fff",
    }, badge[1])
    : node("rect", { x: "0.5", y: "5", width: "31", height: "4", fill: "#9ca3af" });
  icon.replaceChildren(frame, inside);
  icon.dataset.brand = brand;
}

export function copyIcon(): SVGElement {
  const icon = node("svg", { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": "2", "aria-hidden": "true" });
  icon.append(
    node("rect", { x: "9", y: "9", width: "11", height: "11", rx: "2" }),
    node("path", { d: "M5 15V6a2 2 0 0 1 2-2h9" }),
  );
  return icon;
}
