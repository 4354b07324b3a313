// Errors that pages see. `name` is the contract: pages cannot use `instanceof` on classes of another script.

import { RemoteError } from "../messages/channel";
import type { FieldError, WireError } from "../messages/protocol";

export class BasisTheoryValidationError extends Error {
  constructor(message: string, readonly details: unknown, readonly validation?: FieldError[]) {
    super(message);
    this.name = "BasisTheoryValidationError";
  }
}

export class BasisTheoryApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly data?: unknown,
    readonly _debug?: Record<string, unknown>,
  ) {
    super(message);
    this.name = "BasisTheoryApiError";
  }
}

export class BasisTheoryConfigurationError extends Error {
  constructor(message: string, readonly details: unknown = { type: "invalid-configuration", message }) {
    super(message);
    this.name = "BasisTheoryConfigurationError";
  }
}

export class HttpClientError extends Error {
  constructor(message: string, readonly status: number, readonly data?: unknown, readonly headers?: unknown) {
    super(message);
    this.name = "HttpClientError";
  }
}

/** Converts an error of a frame. */
export function fromFrame(error: unknown): unknown {
  if (!(error instanceof RemoteError)) {
    return error;
  }
  const { name, message, status = -1, data, details, validation, headers, debug }: WireError = error.wire;
  switch (name) {
    case "BasisTheoryValidationError":
      return new BasisTheoryValidationError(message, details, validation);
    case "BasisTheoryApiError":
      return new BasisTheoryApiError(message, status, data, debug);
    case "BasisTheoryConfigurationError":
      return new BasisTheoryConfigurationError(message, details);
    case "HttpClientError":
      return new HttpClientError(message, status, data, headers);
    default:
      return new Error(message);
  }
}
