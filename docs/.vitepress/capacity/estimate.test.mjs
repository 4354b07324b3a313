// The estimate agrees with sums done by hand. `npm test` runs it.

import assert from "node:assert/strict";
import test from "node:test";

import { defaults, estimate, price } from "./estimate.mjs";

const quiet = { ...defaults, creates: 0, masked: 0, revealed: 0 };
const near = (actual, expected) => assert.ok(Math.abs(actual / expected - 1) < 0.001, `${actual} is not ${expected}`);

test("a token with its fingerprint takes 720 bytes", () => {
  near(estimate({ ...quiet, tokens: 1e9, terms: 1 }).tokenBytes, 720e9);
  near(estimate({ ...quiet, tokens: 1e6, terms: 0 }).tokenBytes, 460e6);
  near(estimate({ ...quiet, tokens: 1e6, terms: 3 }).tokenBytes, 1152e6);
});

test("the audit log has an entry of 357 bytes for every request of the average rate", () => {
  const input = { ...quiet, masked: 1000, average: 0.5, retention: 2 };
  near(estimate(input).auditBytes, 500 * 86_400 * 2 * 357);
});

test("cores are the microseconds of all requests at the peak", () => {
  const { busy } = estimate({ ...quiet, creates: 10_000, masked: 90_000 });
  near(busy.postgres, 1.294 + 4.113);
  near(busy.node, 1.66 + 7.848);
  near(busy.redis, 0.451 + 0.423);
});

test("a machine has twice the cores that the peak keeps busy, and at least two for PostgreSQL", () => {
  const input = { ...quiet, creates: 10_000, masked: 90_000, utilization: 0.5, nodes: 3 };
  assert.equal(estimate(input).postgresCores, 11);
  assert.equal(estimate(input).nodeCores, 10);
  assert.equal(estimate(quiet).postgresCores, 2);
});

test("one cluster is enough up to a billion tokens", () => {
  assert.equal(estimate({ ...defaults, tokens: 1e9 }).clusters, 1);
  assert.equal(estimate({ ...defaults, tokens: 1e9 + 1 }).clusters, 2);
  assert.equal(estimate({ ...quiet, masked: 1e6, utilization: 0.5 }).clusters, 3);
  assert.match(estimate({ ...defaults, tokens: 1e10 }).shape, /^10 clusters$/);
});

test("redis counts on one core and is reported before it is saturated", () => {
  assert.equal(estimate({ ...quiet, creates: 10_000, masked: 40_000 }).isRedisSaturated, false);
  assert.equal(estimate({ ...quiet, creates: 10_000, masked: 90_000 }).isRedisSaturated, true);
});

test("the price is that of all cores and disks", () => {
  const input = { ...quiet, tokens: 1e6, standbys: 1, nodes: 2, corePrice: 30, diskPrice: 0.1 };
  const sizes = estimate(input);
  const { month, allCores, perMillionTokens } = price(input, sizes);
  assert.equal(allCores, 2 * 2 + 2 * 1 + 1);
  near(month, 7 * 30 + 2 * 0.72 * 1.5 * 0.1);
  near(perMillionTokens, month);
});

test("memory is paid for, also without use of its cores", () => {
  const input = { ...quiet, tokens: 1e9, standbys: 0, nodes: 1 };
  const sizes = estimate(input);
  near(sizes.memory, 4 + 159);
  assert.equal(sizes.postgresCores, 2);
  assert.equal(price(input, sizes).allCores, Math.ceil(163 / 4) + 1);
});

test("the hosted price has a base and a price per further token", () => {
  const at = (tokens) => price({ ...quiet, tokens }, estimate({ ...quiet, tokens })).hosted;
  near(at(20_000), 995);
  near(at(1_020_000), 995 + 50_000);
});

test("no requests have no price", () => {
  assert.equal(price(quiet, estimate(quiet)).perMillionRequests, 0);
});
