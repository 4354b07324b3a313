// The settings of the shop's server. `cloakroom dev --shop` sets all of them.

const NAMES = [
  "PORT",
  "VAULT_API_URL",
  "VAULT_HOST",
  "VAULT_PUBLIC_KEY",
  "VAULT_PRIVATE_KEY",
  "WEBHOOK_SECRET",
  "PROXY_KEY",
];

export const environment = Object.fromEntries(NAMES.map((name) => [name, required(name)]));

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`the environment variable ${name} is not set; see examples/shop/README.md`);
  }
  return value;
}
