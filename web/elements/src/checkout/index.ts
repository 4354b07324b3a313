// The hosted card form: formats and checks what is typed, and submits it once. The page around it is the vault's own.

import { brandOf } from "../field/brands";
import { cardNumberFormat, expirationFormat, type Format, parseExpiration, securityCodeFormat, textFormat } from "../field/formats";
import { brandIcon, showBrand } from "../field/icons";
import { reformat } from "../field/input";

interface Data {
  /** Path that the card is posted to. */
  action: string;
  messages: Record<string, string>;
}

const NAME_LENGTH_MAX = 100;
const CONFLICTS = [404, 409, 410];

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const { action, messages }: Data = JSON.parse(find("data").textContent as string);

/** A field of the form, with the place of its error. */
class Field {
  readonly node: HTMLInputElement;
  readonly #error: HTMLElement;
  readonly #label: string;
  #clean = "";

  constructor(readonly id: string, readonly format: Format, onChange: () => void = () => {}) {
    this.node = find<HTMLInputElement>(id);
    this.#error = find(`${id}-error`);
    this.#label = (document.querySelector(`label[for="${id}"]`) as HTMLElement).textContent as string;
    this.node.addEventListener("input", () => {
      this.#clean = reformat(this.node, format, this.#clean);
      // An error appears when the cardholder leaves the field, and goes away while they correct it.
      this.show(undefined);
      onChange();
    });
    this.node.addEventListener("blur", () => {
      if (this.value !== "") {
        this.show(this.problem());
      }
    });
    // The browser may have filled the form before this script ran.
    this.refresh();
  }

  get value(): string {
    return this.#clean;
  }

  refresh(): void {
    this.#clean = this.format.clean(this.node.value);
    this.node.value = this.format.show(this.#clean);
  }

  /** The message key of what is wrong, if anything is. */
  problem(): string | undefined {
    return this.#clean.trim() === "" ? "required" : this.format.judge(this.#clean).error;
  }

  show(problem: string | undefined): void {
    this.node.setAttribute("aria-invalid", String(problem !== undefined));
    const text = problem === undefined ? "" : messages[problem].replace("{field}", this.#label);
    if (this.#error.textContent !== text) {
      this.#error.textContent = text;
    }
  }

  wipe(): void {
    this.node.value = "";
    this.#clean = "";
  }
}

const number = new Field("number", cardNumberFormat(), numberChanged);
const expiration = new Field("expiration", expirationFormat({
  showsSpacing: () => true,
  maxElapsedYears: () => 0,
  now: () => new Date(),
}));
const code = new Field("code", securityCodeFormat(() => (number.value === "" ? undefined : brandOf(number.value))));
const name = document.getElementById("name")
  ? new Field("name", textFormat({ maxLength: NAME_LENGTH_MAX, validation: () => undefined }))
  : undefined;
const fields = [number, expiration, code, ...(name ? [name] : [])];

const form = find<HTMLFormElement>("form");
const button = find<HTMLButtonElement>("submit");
const status = find("status");
const submitText = button.textContent as string;

const icon = brandIcon();
find("brand").append(icon);
let brand = "unknown";
numberChanged();

function numberChanged(): void {
  const { type, niceType, code: { size } } = brandOf(number.value);
  if (type !== brand) {
    brand = type;
    showBrand(icon, type);
    find("brand-name").textContent = niceType ? messages.brand.replace("{brand}", niceType) : "";
    code.refresh();
  }
  const count = type === "unknown" ? "3–4" : String(size);
  find("code-hint").textContent = messages.security_code_hint.replace("{count}", count);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!button.disabled) {
    submit().catch(() => finish("not_submitted"));
  }
});

async function submit(): Promise<void> {
  const problems = fields.map((field) => [field, field.problem()] as const);
  problems.forEach(([field, problem]) => field.show(problem));
  const first = problems.find(([, problem]) => problem !== undefined);
  if (first) {
    return reject(first[0]);
  }
  setBusy(true);
  const response = await fetch(action, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(card()),
    credentials: "omit",
    cache: "no-store",
  });
  const body = await response.json();
  if (response.ok) {
    fields.forEach((field) => field.wipe());
    announce("submitted");
    window.location.replace(body.location);
  } else if (CONFLICTS.includes(response.status)) {
    // The session is complete or has expired; the page says so and leads back to the merchant.
    fields.forEach((field) => field.wipe());
    window.location.reload();
  } else if (response.status === 400) {
    setBusy(false);
    rejectByServer(Object.keys(body.errors ?? {}));
  } else {
    finish(response.status === 429 ? "too_many_attempts" : "not_submitted");
  }
}

function card(): object {
  const { month, year } = parseExpiration(expiration.value) as { month: number; year: number };
  return {
    data: { number: number.value, expiration_month: month, expiration_year: year, cvc: code.value },
    ...(name ? { cardholder_name: name.value.trim() } : {}),
  };
}

function rejectByServer(paths: string[]): void {
  const places: [Field | undefined, string][] = [
    [number, "data.number"],
    [expiration, "data.expiration"],
    [code, "data.cvc"],
    [name, "cardholder_name"],
  ];
  const wrong = places.filter(([, prefix]) => paths.some((path) => path.startsWith(prefix)));
  wrong.forEach(([field]) => field?.show("invalid"));
  const [field] = wrong.find(([field]) => field !== undefined) ?? [];
  if (field) {
    reject(field);
  } else {
    announce("not_submitted");
  }
}

function reject(field: Field): void {
  announce("correct_fields");
  field.node.focus();
}

function finish(key: string): void {
  setBusy(false);
  announce(key);
}

/** Announced by screen readers, even if the text is the same as before. */
function announce(key: string): void {
  status.textContent = "";
  window.setTimeout(() => (status.textContent = messages[key]), 50);
}

function setBusy(isBusy: boolean): void {
  button.disabled = isBusy;
  button.textContent = isBusy ? messages.submitting : submitText;
  form.setAttribute("aria-busy", String(isBusy));
  fields.forEach((field) => (field.node.readOnly = isBusy));
}

// A page from the back-forward cache would still show a card that was submitted.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) {
    fields.forEach((field) => field.wipe());
    window.location.reload();
  }
});
