// Messages between the page, the field frames and the coordinator frame.
//
// Three kinds of ports exist: page and field, page and coordinator, field and coordinator. The page holds an end of the
// first two only, so no message type on them carries a value that a cardholder typed.

/** Changes when old client scripts cannot talk to new frames. */
export const PROTOCOL = 1;

export type ElementType =
  | "card"
  | "cardNumber"
  | "cardExpirationDate"
  | "cardVerificationCode"
  | "text"
  | "copyButton"
  | "data";

export const MOUNTABLE_TYPES: readonly ElementType[] = [
  "card",
  "cardNumber",
  "cardExpirationDate",
  "cardVerificationCode",
  "text",
  "copyButton",
];

export const EVENT_TYPES = ["ready", "change", "focus", "blur", "keydown", "click", "copy"] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export type ErrorKind = "incomplete" | "invalid";

export interface FieldError {
  targetId: string;
  type: ErrorKind;
}

/** What a page may know about a field. Nothing else about its content crosses to the page. */
export interface Metadata {
  complete: boolean;
  valid: boolean;
  maskSatisfied: boolean;
  empty: boolean;
  errors?: FieldError[];
}

export interface CardMetadata {
  cardBrand: string;
  cardLast4?: string;
  cardBin?: string;
}

export interface State {
  metadata: Metadata;
  cardMetadata?: CardMetadata;
}

/** What a field reports after every change. */
export interface Report {
  /** As it is sent to the API; null while empty. */
  value: unknown;
  /** As typed, for followers and copy buttons. */
  display: string | Record<string, string>;
  /** Whether `value` is the result of a transform of the page. */
  isTransformed: boolean;
  complete: boolean;
  /** Errors, or for `card` those of each property. */
  errors: ErrorKind | Record<string, ErrorKind> | null;
  /** What the page knows. A follower takes it over: rules of its own would tell the page more about the same value. */
  state: State;
}

/** Where a value of an element or of an earlier response belongs in a payload. */
export interface Placement {
  path: (string | number)[];
  elementId: string;
  method?: string;
  format?: string;
}

/** A JSON value with gaps, and what fills them. */
export interface Payload {
  json: unknown;
  placements: Placement[];
}

export interface RequestOptions {
  apiKey?: string;
  correlationId?: string;
  idempotencyKey?: string;
}

/** A value in the coordinator that the page can only point at. */
export interface DataElementReference {
  correlationId: string;
  elementId: string;
  path: string;
}

/** Sent to the other window before a port exists. */
export type Greeting =
  | { elements: typeof PROTOCOL; kind: "hello"; id: string }
  | { elements: typeof PROTOCOL; kind: "connect" }
  | { elements: typeof PROTOCOL; kind: "join"; id: string; type: ElementType };

export function isGreeting(data: unknown): data is Greeting {
  return typeof data === "object" && data !== null && Object.hasOwn(data, "elements")
    && (data as Greeting).elements === PROTOCOL;
}

/** Fields of a frame's URL after `#`: chosen by the page, checked by the frame. */
export interface FrameParameters {
  id: string;
  type: ElementType;
  coordinator: string;
}

/** An error in a form that survives a port. */
export interface WireError {
  name: string;
  message: string;
  status?: number;
  data?: unknown;
  details?: unknown;
  validation?: FieldError[];
  headers?: unknown;
  debug?: Record<string, unknown>;
}
