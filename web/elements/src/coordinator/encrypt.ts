// Encrypts to a key of the vault: a compact JWE (RFC 7516) with ECDH-ES on X25519 and A256GCM.

import { configurationError } from "../messages/channel";

const encoder = new TextEncoder();
const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Parses the raw public key between PEM boundaries. */
export function parsePem(pem: string): Uint8Array<ArrayBuffer> {
  const text = pem.replace(/-----[A-Z ]+-----/g, "").replace(/\s/g, "");
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (bytes.length !== 32) {
    throw configurationError("The public key is not an X25519 key");
  }
  return bytes;
}

export async function encrypt(value: unknown, keyId: string, publicKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const recipient = await crypto.subtle.importKey("raw", publicKey, { name: "X25519" }, false, []);
  const ephemeral = await crypto.subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]) as CryptoKeyPair;
  const shared = await crypto.subtle.deriveBits({ name: "X25519", public: recipient }, ephemeral.privateKey, 256);
  const key = await crypto.subtle.importKey("raw", await concatKdf(shared), "AES-GCM", false, ["encrypt"]);
  const { x } = await crypto.subtle.exportKey("jwk", ephemeral.publicKey);
  const header = base64url(encoder.encode(JSON.stringify({
    alg: "ECDH-ES",
    enc: "A256GCM",
    kid: keyId,
    iat: Math.floor(Date.now() / 1000),
    epk: { kty: "OKP", crv: "X25519", x },
  })));
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const sealed = new Uint8Array(
    await crypto.subtle.encrypt(
      { name: "AES-GCM", iv, additionalData: encoder.encode(header) },
      key,
      encoder.encode(JSON.stringify(value)),
    ),
  );
  const [ciphertext, tag] = [sealed.slice(0, -16), sealed.slice(-16)];
  return [header, "", base64url(iv), base64url(ciphertext), base64url(tag)].join(".");
}

/** The key derivation of RFC 7518 section 4.6.2, for one round and without party information. */
async function concatKdf(shared: ArrayBuffer): Promise<ArrayBuffer> {
  const number = (value: number) => new Uint8Array([0, 0, value >> 8, value & 255]);
  const algorithm = encoder.encode("A256GCM");
  const parts = [
    number(1), new Uint8Array(shared), number(algorithm.length), algorithm, number(0), number(0), number(256),
  ];
  const input = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  parts.reduce((offset, part) => (input.set(part, offset), offset + part.length), 0);
  return crypto.subtle.digest("SHA-256", input);
}
