// Lists and searches: every filter, every page.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import { attempt, browser, collect, management, ownContainer, refusal, vault } from "./vault.mjs";

const { BadRequestError, ForbiddenError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const ids = (tokens) => tokens.map((token) => token.id);

/** Tokens one after the other, so that their order is known; the newest comes first. */
async function make(requests) {
  const made = [];
  for (const request of requests) {
    made.unshift(await vault.tokens.create({ type: "token", data: "x", ...request }));
  }
  return ids(made);
}

attempt("tokens.listV2", "pages of three are followed to the end", async () => {
  const container = ownContainer();
  const made = await make(Array.from({ length: 7 }, () => ({ containers: [container] })));

  const page = await vault.tokens.listV2({ container, size: 3 });
  const first = ids(page.data);
  const all = await collect(vault.tokens.listV2({ container, size: 3 }));
  const exact = await collect(vault.tokens.listV2({ container, size: 7 }));

  assert.deepEqual(first, made.slice(0, 3));
  assert.equal(page.hasNextPage(), true);
  assert.deepEqual(ids((await page.getNextPage()).data), made.slice(3, 6));
  assert.deepEqual(ids((await page.getNextPage()).data), made.slice(6));
  assert.equal(page.hasNextPage(), false);
  assert.deepEqual(ids(all), made);
  assert.deepEqual(ids(exact), made);
});

attempt("tokens.listV2", "without a filter, pages of three go on past the first", async () => {
  await make([{}, {}, {}, {}]);

  const seen = new Set();
  for await (const token of await vault.tokens.listV2({ size: 3 })) {
    seen.add(token.id);
    if (seen.size > 3) {
      break;
    }
  }

  assert.equal(seen.size, 4);
});

attempt("tokens.listV2", "each token is shown as a read shows it", async () => {
  const container = ownContainer();
  const data = { number: "4242424242424242", expiration_month: 1, expiration_year: 2032 };
  const { id } = await vault.tokens.create({ type: "card", data, containers: [container] });

  const [listed] = await collect(vault.tokens.listV2({ container }));

  assert.deepEqual(listed, await vault.tokens.get(id));
  assert.deepEqual(listed.data, data);
});

attempt("tokens.listV2", "every filter, alone and below a container", async () => {
  const container = ownContainer();
  const value = randomUUID();
  const [metadata, fingerprint, type] = await make([
    { type: "us_bank_account_number", data: "123456", containers: [`${container}deeper/`] },
    { data: value, containers: [container] },
    { metadata: { "Order Nr. 1": value, other: "x" }, containers: [container] },
  ]);
  const print = (await vault.tokens.get(fingerprint)).fingerprint;
  const list = async (filter) => ids(await collect(vault.tokens.listV2(filter)));

  assert.deepEqual(await list({ container }), [type, metadata, fingerprint]);
  assert.deepEqual(await list({ container: container.toUpperCase() }), [type, metadata, fingerprint]);
  assert.deepEqual(await list({ container: `${container}deeper/` }), [type]);
  assert.deepEqual(await list({ container: ownContainer() }), []);
  assert.ok((await list({ type: "us_bank_account_number", size: 100 })).includes(type));
  assert.deepEqual(await list({ container, type: "us_bank_account_number" }), [type]);
  assert.deepEqual(await list({ container, type: "card" }), []);
  assert.deepEqual(await list({ fingerprint: print }), [fingerprint]);
  assert.deepEqual(await list({ container, fingerprint: print }), [fingerprint]);
  assert.deepEqual(await list({ metadata: { "Order Nr. 1": value } }), [metadata]);
  assert.deepEqual(await list({ container, metadata: { other: "x" } }), [metadata]);
  // Compared exactly.
  assert.deepEqual(await list({ metadata: { "order nr. 1": value } }), []);
  assert.deepEqual(await list({ metadata: { "Order Nr. 1": value.toUpperCase() } }), []);
});

attempt("tokens.listV2", "a filter is kept from page to page", async () => {
  const container = ownContainer();
  const metadata = { customer: randomUUID() };
  const made = await make([
    { metadata, containers: [container] },
    { containers: [container] },
    { metadata, containers: [container] },
    { containers: [container] },
    { metadata, containers: [container] },
  ]);

  const listed = await collect(vault.tokens.listV2({ container, metadata, size: 1 }));

  assert.deepEqual(ids(listed), [made[0], made[2], made[4]]);
});

attempt("tokens.listV2", "containers come in descending order, each with its newest first", async () => {
  const container = ownContainer();
  const [second, top, first] = await make([
    { containers: [`${container}b/`] },
    { containers: [container] },
    { containers: [`${container}b/`] },
  ]);
  const [last] = await make([{ containers: [`${container}a/`] }]);

  const listed = await collect(vault.tokens.listV2({ container, size: 2 }));

  assert.deepEqual(ids(listed), [second, first, last, top]);
});

attempt("tokens.listV2", "a new token is listed at once, a deleted one no more", async () => {
  const container = ownContainer();
  const [second, first] = await make([{ containers: [container] }, { containers: [container] }]);

  await vault.tokens.delete(first);

  assert.deepEqual(ids(await collect(vault.tokens.listV2({ container }))), [second]);
});

attempt("tokens.listV2", "a page of none is empty", async () => {
  const page = await vault.tokens.listV2({ size: 0 });

  assert.deepEqual(page.data, []);
});

const INVALID_LISTS = [
  ["more than a hundred", { size: 101 }, ["size"]],
  ["less than none", { size: -1 }, ["size"]],
  ["part of one", { size: 1.5 }, ["size"]],
  ["an invented cursor", { start: "AgAAAA==" }, ["start"]],
  ["an unknown type", { type: "passport" }, ["type"]],
  ["a container without slashes", { container: "pci" }, ["container"]],
  ["two filters", { type: "card", fingerprint: "abc" }, ["fingerprint", "type"]],
  ["two entries of metadata", { metadata: { a: "1", b: "2" } }, ["metadata"]],
];

for (const [name, filter, parameters] of INVALID_LISTS) {
  attempt("tokens.listV2", `what is invalid is named: ${name}`, async () => {
    // This method has no class of its own for 400.
    const { body } = await refusal(vault.tokens.listV2(filter), BasisTheoryError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors).sort(), parameters);
  });
}

attempt("tokens.listV2", "a cursor belongs to its filter", async () => {
  const container = ownContainer();
  await make([{ containers: [container] }, { containers: [container] }]);
  const page = await vault.tokens.listV2({ container, size: 1 });
  const start = page.response.pagination.next;

  const other = vault.tokens.listV2({ container: ownContainer(), size: 1, start });

  const { body } = await refusal(other, BasisTheoryError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["start"]);
});

attempt("tokens.listV2", "keys that may not read may not list", async () => {
  await refusal(browser.tokens.listV2(), ForbiddenError, 403, "Forbidden");
  await refusal(management.tokens.listV2(), ForbiddenError, 403, "Forbidden");
});

attempt("tokens.searchV2", "pages are followed although the idempotency key stays", async () => {
  const container = ownContainer();
  const made = await make(Array.from({ length: 7 }, () => ({ containers: [container] })));
  const query = `container:"${container}"`;

  const idempotencyKey = randomUUID();
  const found = await collect(vault.tokens.searchV2({ query, size: 3 }, { idempotencyKey }));
  const again = await collect(vault.tokens.searchV2({ query, size: 2 }, { idempotencyKey }));

  assert.deepEqual(ids(found), made);
  assert.deepEqual(ids(again), made);
});

attempt("tokens.searchV2", "every field, alone and with a container", async () => {
  const container = ownContainer();
  const value = randomUUID();
  const [metadata, data, type] = await make([
    { type: "us_bank_account_number", data: "123456", containers: [`${container}deeper/`] },
    {
      data: { Name: `Ada ${value}` },
      searchIndexes: ["{{ data.Name }}", "{{ data.Name | last4 }}"],
      containers: [container],
    },
    { metadata: { Order: value }, containers: [container] },
  ]);
  const print = (await vault.tokens.get(type)).fingerprint;
  const search = async (query) => ids(await collect(vault.tokens.searchV2({ query })));

  assert.deepEqual(await search(`container:"${container}"`), [type, metadata, data]);
  assert.deepEqual(await search(`data:"Ada ${value}"`), [data]);
  assert.deepEqual(await search(`data:${value.slice(-4)} AND container:"${container}"`), [data]);
  assert.deepEqual(await search(`metadata.Order:${value}`), [metadata]);
  assert.deepEqual(await search(`container:"${container}" AND metadata.Order:${value}`), [metadata]);
  assert.deepEqual(
    await search(`type:us_bank_account_number AND container:"${container}"`),
    [type],
  );
  assert.deepEqual(await search(`fingerprint:${print} AND container:"${container}"`), [type]);
  // Compared exactly, and only with the indexes.
  assert.deepEqual(await search(`data:"ada ${value}"`), []);
  assert.deepEqual(await search(`data:${value}`), []);
});

attempt("tokens.searchV2", "a card is found by its month and its last four digits", async () => {
  const container = ownContainer();
  const { id } = await vault.tokens.create({
    type: "card",
    data: { number: "4242424242424242", expiration_month: 4, expiration_year: 2025, cvc: 123 },
    searchIndexes: ["{{ data.expiration_month }}", "{{ data.number | last4 }}"],
    containers: [container],
  });
  const search = async (value) =>
    ids(await collect(vault.tokens.searchV2({ query: `data:${value} AND container:${container}` })));

  assert.deepEqual(await search("4"), [id]);
  assert.deepEqual(await search("4242"), [id]);
  assert.deepEqual(await search("4242424242424242"), []);
});

attempt("tokens.searchV2", "the default indexes of a social security number", async () => {
  const container = ownContainer();
  const { id } = await vault.tokens.create({
    type: "social_security_number",
    data: "123-45-6789",
    containers: [container],
  });
  const search = async (value) =>
    ids(await collect(vault.tokens.searchV2({ query: `data:${value} AND container:${container}` })));

  assert.deepEqual(await search("123-45-6789"), [id]);
  assert.deepEqual(await search("123456789"), [id]);
  assert.deepEqual(await search("6789"), [id]);
});

attempt("tokens.searchV2", "indexes follow the token when it changes", async () => {
  const [before, after, other] = [randomUUID(), randomUUID(), randomUUID()];
  const { id } = await vault.tokens.create({
    type: "token",
    data: { name: before, other },
    searchIndexes: ["{{ data.name }}"],
  });
  const search = async (value) =>
    ids(await collect(vault.tokens.searchV2({ query: `data:${value}` })));
  const found = [await search(before)];

  await vault.tokens.update(id, { data: { name: after } });
  found.push(await search(before), await search(after));
  await vault.tokens.update(id, { searchIndexes: ["{{ data.other }}"] });
  found.push(await search(after), await search(other));
  await vault.tokens.update(id, { searchIndexes: null });
  found.push(await search(other));

  assert.deepEqual(found, [[id], [], [id], [], [id], []]);
});

attempt("tokens.searchV2", "without a query everything is found", async () => {
  await make([{}, {}, {}]);

  const page = await vault.tokens.searchV2({ size: 2 });
  const plain = await vault.tokens.searchV2();

  assert.equal(page.data.length, 2);
  assert.equal(page.hasNextPage(), true);
  assert.ok(plain.data.length >= 3);
});

const INVALID_SEARCHES = [
  ["alternatives", { query: "data:a OR data:b" }, ["query"]],
  ["a negation", { query: "NOT type:card" }, ["query"]],
  ["a wildcard", { query: "data:a*" }, ["query"]],
  ["a range", { query: "data:[a TO b]" }, ["query"]],
  ["a value without a field", { query: "card" }, ["query"]],
  ["an id, which only the older search knows", { query: "id:abc" }, ["query"]],
  ["two fields that exclude each other", { query: "type:card AND data:x" }, ["query"]],
  ["more than two hundred characters", { query: `data:${"x".repeat(200)}` }, ["query"]],
  ["too many on a page, after no cursor", { size: 101, start: "x" }, ["size"]],
];

for (const [name, request, attributes] of INVALID_SEARCHES) {
  attempt("tokens.searchV2", `what is invalid is named: ${name}`, async () => {
    const search = vault.tokens.searchV2(request);
    const { body } = await refusal(search, BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors).sort(), attributes);
  });
}

attempt("tokens.searchV2", "keys that may not search may not search", async () => {
  await refusal(browser.tokens.searchV2(), ForbiddenError, 403, "Forbidden");
  await refusal(management.tokens.searchV2(), ForbiddenError, 403, "Forbidden");
});
