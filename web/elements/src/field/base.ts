// The look of a field before the page's own style.

const CSS = `
*, *::before, *::after { box-sizing: border-box; }
html, body { margin: 0; padding: 0; background: transparent; overflow: hidden; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
form { margin: 0; }
.container { display: flex; flex-wrap: wrap; align-items: center; gap: 0 8px; width: 100%; }
.input {
  appearance: none; flex: 1 1 0; min-width: 0; width: 100%; margin: 0; padding: 0; border: 0; border-radius: 0;
  outline: 0; background: transparent; color: inherit; font: inherit; line-height: inherit; text-align: inherit;
}
.input::placeholder { color: #6b7280; opacity: 1; }
.input.invalid { color: #b3261e; }
.card .input { flex: 1 1 11ch; }
.card .short { flex: 0 1 8ch; }
@media (max-width: 340px) {
  .card .input { flex-basis: calc(100% - 40px); }
  .card .short { flex: 1 1 8ch; }
}
[dir="rtl"] .input { text-align: right; }
.hidden {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.icon { flex: none; width: 32px; height: 20px; display: block; }
.icon.right { order: 9; }
.copy {
  flex: none; display: inline-flex; padding: 2px; border: 0; border-radius: 4px; background: none; color: #4b5563;
  cursor: pointer; order: 10;
}
.copy svg { width: 20px; height: 20px; display: block; }
.networks { display: flex; gap: 12px; flex: 1 1 100%; margin: 4px 0 0; padding: 0; border: 0; font-size: 14px; order: 11; }
.networks[hidden] { display: none; }
.networks label { display: inline-flex; align-items: center; gap: 4px; cursor: pointer; }
.button {
  font: inherit; padding: 6px 12px; border: 1px solid #6b7280; border-radius: 6px; background: #fff; color: #111827;
  cursor: pointer; width: 100%;
}
.button:disabled { cursor: not-allowed; color: #6b7280; }
.button:focus-visible, .copy:focus-visible, .networks input:focus-visible { outline: 2px solid #1d4ed8; outline-offset: 1px; }
`;

export function applyBaseStyle(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(CSS);
  document.adoptedStyleSheets = [sheet];
}
