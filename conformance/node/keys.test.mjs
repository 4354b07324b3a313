// Client encryption keys: made by management, used by whoever sends data that only the vault can open.

import assert from "node:assert/strict";
import {
  createCipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
  randomUUID,
} from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import { UUID_V4, assertFromNow, attempt, browser, management, refusal, vault } from "./vault.mjs";

const { BadRequestError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const YEAR = 365 * 24 * 3_600;
const PEM = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/]{43}=)\n-----END PUBLIC KEY-----\s*$/;
const CARD = { number: "4242424242424242", expiration_month: 12, expiration_year: 2030 };

const base64url = (bytes) => Buffer.from(bytes).toString("base64url");
const length = (bytes) => {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(bytes.length);
  return Buffer.concat([prefix, bytes]);
};

/** A compact JWE of some JSON: ECDH-ES over X25519, A256GCM. */
function encrypted(data, { keyId, publicKeyPem }) {
  const x = base64url(Buffer.from(PEM.exec(publicKeyPem)[1], "base64"));
  const theirs = createPublicKey({ key: { kty: "OKP", crv: "X25519", x }, format: "jwk" });
  const ours = generateKeyPairSync("x25519");
  const epk = ours.publicKey.export({ format: "jwk" });
  const header = base64url(
    JSON.stringify({ alg: "ECDH-ES", kid: keyId, enc: "A256GCM", epk }),
  );
  const shared = diffieHellman({ privateKey: ours.privateKey, publicKey: theirs });
  const info = Buffer.concat([
    length(Buffer.from("A256GCM")),
    length(Buffer.alloc(0)),
    length(Buffer.alloc(0)),
    Buffer.from([0, 0, 1, 0]),
  ]);
  const key = createHash("sha256")
    .update(Buffer.concat([Buffer.from([0, 0, 0, 1]), shared, info]))
    .digest();
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(header));
  const text = Buffer.concat([cipher.update(JSON.stringify(data)), cipher.final()]);
  return [header, "", base64url(iv), base64url(text), base64url(cipher.getAuthTag())].join(".");
}

attempt("keys.create", "90 days, and 32 bytes that are shown this once", async () => {
  const { data: key, rawResponse } = await management.keys.create().withRawResponse();
  const read = await management.keys.get(key.keyId);

  assert.equal(rawResponse.status, 201);
  assert.match(key.keyId, UUID_V4);
  assert.match(key.publicKeyPem, PEM);
  assertFromNow(key.expiresAt, 90 * 24 * 3_600);
  assert.equal(read.keyId, key.keyId);
  assert.deepEqual(read.expiresAt, key.expiresAt);
  assert.equal(read.publicKeyPem ?? read.public_key_pem, undefined);
});

attempt("keys.create", "ends when asked, within a year", async () => {
  const expiresAt = new Date(Date.now() + 3_600_000);

  const key = await management.keys.create({ expiresAt });
  const tooLong = management.keys.create({ expiresAt: new Date(Date.now() + 2 * YEAR * 1000) });

  assertFromNow(key.expiresAt, 3_600);
  const { body } = await refusal(tooLong, BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["expires_at"]);
});

attempt("keys.list", "all keys, without what is public of them", async () => {
  const first = await management.keys.create();
  const second = await management.keys.create();

  const keys = await management.keys.list();

  const ids = keys.map((key) => key.keyId);
  assert.ok(ids.includes(first.keyId));
  assert.ok(ids.includes(second.keyId));
  assert.doesNotMatch(JSON.stringify(keys), /PUBLIC KEY/);
});

attempt("keys.delete", "it is gone, and opens nothing any more", async () => {
  const key = await management.keys.create();

  const { rawResponse } = await management.keys.delete(key.keyId).withRawResponse();

  assert.equal(rawResponse.status, 204);
  await refusal(management.keys.get(key.keyId), NotFoundError, 404, "Not Found");
  await refusal(management.keys.delete(key.keyId), NotFoundError, 404, "Not Found");
  const late = vault.tokens.create({ type: "card", encrypted: encrypted(CARD, key) });
  const { body } = await refusal(late, BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["encrypted"]);
});

attempt("keys.get", "an unknown one is not found", async () => {
  await refusal(management.keys.get(randomUUID()), NotFoundError, 404, "Not Found");
});

attempt("keys.*", "only management keys make and see them", async () => {
  for (const key of [vault, browser]) {
    await refusal(key.keys.create(), ForbiddenError, 403, "Forbidden");
    await refusal(key.keys.list(), ForbiddenError, 403, "Forbidden");
    await refusal(key.keys.get(randomUUID()), ForbiddenError, 403, "Forbidden");
    await refusal(key.keys.delete(randomUUID()), ForbiddenError, 403, "Forbidden");
  }
});

attempt("tokens.create", "what was encrypted to a key is kept as if it had come in clear", async () => {
  const key = await management.keys.create();

  const created = await browser.tokens.create({ type: "card", encrypted: encrypted(CARD, key) });
  const read = await vault.tokens.get(created.id);

  assert.equal(created.data.number, "XXXXXXXXXXXX4242");
  assert.deepEqual(read.data, CARD);
});

attempt("tokens.create", "what was encrypted is checked like the rest", async () => {
  const key = await management.keys.create();
  const request = { type: "card", encrypted: encrypted({ number: "4242424242424241" }, key) };

  const { body } = await refusal(vault.tokens.create(request), BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors), ["data.number"]);
});

attempt("tokens.create", "what was tampered with is refused", async () => {
  const key = await management.keys.create();
  const parts = encrypted(CARD, key).split(".");
  parts[3] = base64url(randomBytes(Buffer.from(parts[3], "base64url").length));
  const request = { type: "card", encrypted: parts.join(".") };

  const { body } = await refusal(vault.tokens.create(request), BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors), ["encrypted"]);
});

attempt("tokenIntents.create", "an intent of what was encrypted", async () => {
  const key = await management.keys.create();

  const intent = await browser.tokenIntents.create({ type: "card", encrypted: encrypted(CARD, key) });

  assert.equal(intent.card.last4, "4242");
});
