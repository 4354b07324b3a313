// What each of the nine types brings along: container, mask, indexes, fingerprint and details.

import assert from "node:assert/strict";

import { attempt, cardBasics, given, vault } from "./vault.mjs";

const LAST4 = "{{ data | reveal_last: 4 }}";
const NINE_DIGITS = ["{{ data }}", "{{ data | replace: '-' }}", "{{ data | last4 }}"];
const CARD_MASK = {
  number: "{{ data.number | reveal_last: 4 }}",
  expiration_month: "{{ data.expiration_month }}",
  expiration_year: "{{ data.expiration_year }}",
};

const TYPES = [
  {
    type: "token",
    data: { any: ["thing"] },
    containers: ["/general/high/"],
    fingerprintExpression: "{{ data | stringify }}",
  },
  {
    type: "card",
    data: { number: "5555555555554444", expiration_month: 1, expiration_year: 2032 },
    masked: { number: "XXXXXXXXXXXX4444", expiration_month: 1, expiration_year: 2032 },
    mask: CARD_MASK,
    containers: ["/pci/high/"],
    fingerprintExpression: "{{ data.number }}",
    card: { bin: "55555555", last4: "4444", expirationMonth: 1, expirationYear: 2032 },
  },
  {
    type: "card_number",
    data: "4242424242424242",
    masked: "XXXXXXXXXXXX4242",
    mask: LAST4,
    containers: ["/pci/high/"],
    fingerprintExpression: "{{ data }}",
    card: {
      bin: "42424242",
      last4: "4242",
      expirationMonth: undefined,
      expirationYear: undefined,
    },
  },
  {
    type: "network_token",
    data: { number: "4242424242424241", expiration_month: 2, expiration_year: 2033 },
    masked: { number: "XXXXXXXXXXXX4241", expiration_month: 2, expiration_year: 2033 },
    mask: CARD_MASK,
    containers: ["/pci/high/"],
    fingerprintExpression: "{{ data.number }}",
    networkToken: { bin: "42424242", last4: "4241", expirationMonth: 2, expirationYear: 2033 },
  },
  {
    type: "bank",
    data: { routing_number: "021000021", account_number: "00001" },
    masked: { routing_number: "021000021", account_number: "X0001" },
    mask: {
      routing_number: "{{ data.routing_number }}",
      account_number: "{{ data.account_number | reveal_last: 4 }}",
    },
    containers: ["/bank/high/"],
    fingerprintExpression: "{{ data.account_number }}|{{ data.routing_number }}",
    bank: { routingNumber: "021000021", accountNumberLast4: "0001" },
  },
  {
    type: "us_bank_account_number",
    data: "1234567890",
    masked: "XXXXXX7890",
    mask: LAST4,
    containers: ["/bank/high/"],
    fingerprintExpression: "{{ data }}",
  },
  {
    type: "us_bank_routing_number",
    data: "021000021",
    masked: "XXXXX0021",
    mask: LAST4,
    containers: ["/bank/low/"],
    fingerprintExpression: "{{ data }}",
  },
  {
    type: "social_security_number",
    data: "123-45-6789",
    masked: "XXX-XX-6789",
    mask: LAST4,
    containers: ["/pii/high/"],
    searchIndexes: NINE_DIGITS,
    fingerprintExpression: "{{ data | remove: '-' }}",
  },
  {
    type: "employer_id_number",
    data: "12-3456789",
    masked: "XX-XXX6789",
    mask: LAST4,
    containers: ["/pii/high/"],
    searchIndexes: NINE_DIGITS,
    fingerprintExpression: "{{ data | remove: '-' }}",
  },
];

for (const { data, masked, card, networkToken, ...own } of TYPES) {
  attempt("tokens.create", `a type brings its own along: ${own.type}`, async () => {
    const created = await vault.tokens.create({ type: own.type, data });
    const read = await vault.tokens.get(created.id);

    const { card: madeCard, networkToken: madeToken, extras, ...answered } = given(created);
    const shown = masked === undefined ? {} : { data: masked };
    assert.deepEqual(answered, { searchIndexes: [], ...own, ...shown });
    assert.deepEqual(extras, { deduplicated: false });
    assert.deepEqual(madeCard && cardBasics(madeCard), card);
    assert.deepEqual(madeToken && cardBasics(madeToken), networkToken);
    assert.deepEqual(read.data, data);
    assert.deepEqual(read.mask, own.mask);
  });
}
