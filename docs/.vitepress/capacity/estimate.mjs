// The arithmetic of the capacity page: measured bytes and microseconds, multiplied by what the reader enters.

/** Bytes, measured with 50 million tokens (docs/operate/scale.md). */
export const bytes = {
  token: 460,
  firstTerm: 260,
  furtherTerm: 216,
  auditEntry: 357,
  /** Keys of the hot path, which should be in memory. */
  tokenKey: 53,
  termKey: 106,
  /** WAL of a create: its own, and at most two full pages after a checkpoint. */
  walOfCreate: 1_350 + 2 * 5_750,
};

/** Microseconds of one core per request, with 64 connections (docs/operate/performance.md). */
export const microseconds = {
  create: { node: 166, postgres: 129.4, redis: 45.1 },
  masked: { node: 87.2, postgres: 45.7, redis: 4.7 },
  revealed: { node: 105.2, postgres: 72.9, redis: 7.6 },
};

const day = 86_400;
const hoursOfMonth = 730;
const gigabyte = 1e9;
/** The largest sizes that one cluster is recommended for. */
const oneCluster = { tokens: 1e9, postgresCores: 32 };
/** Memory for connections, sorting and the operating system. */
const baseMemory = 4;
/** GB of memory in the price of a core. */
const memoryOfCore = 4;
/** Free space for vacuum, WAL and growth. */
const diskReserve = 1.5;

export const defaults = {
  tokens: 5_000_000,
  terms: 1,
  creates: 20,
  masked: 200,
  revealed: 50,
  average: 0.3,
  retention: 90,
  standbys: 1,
  nodes: 2,
  utilization: 0.5,
  /** m7g.large: 2 cores and 8 GB for 0.0816 USD per hour. */
  corePrice: 29.8,
  diskPrice: 0.08,
  hostedBase: 995,
  hostedIncluded: 20_000,
  hostedToken: 0.05,
};

const perSecond = (part, { creates, masked, revealed }) =>
  (creates * microseconds.create[part] + masked * microseconds.masked[part] + revealed * microseconds.revealed[part]) / 1e6;

/** Whole cores of a machine, so that the peak uses only a part of them. */
const cores = (busy, utilization) => Math.max(1, Math.ceil(busy / utilization));

/** The deployment for these tokens and requests. */
export function estimate(input) {
  const { tokens, terms, retention, average, standbys, nodes, utilization } = input;
  const requests = input.creates + input.masked + input.revealed;
  const ofToken = bytes.token + (terms > 0 ? bytes.firstTerm + (terms - 1) * bytes.furtherTerm : 0);
  const tokenBytes = tokens * ofToken;
  const auditBytes = requests * average * day * retention * bytes.auditEntry;
  const busy = { node: perSecond("node", input), postgres: perSecond("postgres", input), redis: perSecond("redis", input) };
  const clusters = Math.max(1, Math.ceil(tokens / oneCluster.tokens), Math.ceil(busy.postgres / utilization / oneCluster.postgresCores));
  const memory = baseMemory + (tokens * (bytes.tokenKey + terms * bytes.termKey)) / gigabyte / clusters;
  const disk = ((tokenBytes + auditBytes) * diskReserve) / gigabyte / clusters;
  const postgresCores = Math.max(2, cores(busy.postgres / clusters, utilization));
  // Any node can fail: the others serve the peak.
  const nodeCores = cores(busy.node / Math.max(1, nodes - 1), utilization);
  return {
    requests,
    tokenBytes,
    auditBytes,
    busy,
    clusters,
    memory,
    disk,
    postgresCores,
    nodeCores,
    wal: input.creates * bytes.walOfCreate,
    isRedisSaturated: busy.redis > 0.7,
    shape: shapeOf(clusters, standbys, nodes),
  };
}

function shapeOf(clusters, standbys, nodes) {
  if (clusters > 1) return `${clusters} clusters`;
  if (standbys === 0) return nodes > 1 ? "one PostgreSQL server, several nodes" : "one PostgreSQL server, one node";
  return "one cluster: a primary with standbys, several nodes";
}

/** Dollars per month, and per million tokens and requests, beside the list price of a hosted vault. */
export function price(input, { clusters, postgresCores, nodeCores, memory, disk, requests }) {
  const servers = clusters * (1 + input.standbys);
  const redisCores = input.nodes > 1 ? 1 : 0;
  // A core is sold with its memory: a server with much memory is as expensive as one with as many cores.
  const ofServer = Math.max(postgresCores, Math.ceil(memory / memoryOfCore));
  const allCores = servers * ofServer + input.nodes * nodeCores + redisCores;
  const month = allCores * input.corePrice + servers * disk * input.diskPrice;
  const monthlyRequests = requests * input.average * 3600 * hoursOfMonth;
  const hosted = input.hostedBase + Math.max(0, input.tokens - input.hostedIncluded) * input.hostedToken;
  const perMillion = (amount, count) => (count > 0 ? amount / (count / 1e6) : 0);
  return {
    allCores,
    month,
    perMillionTokens: perMillion(month, input.tokens),
    perMillionRequests: perMillion(month, monthlyRequests),
    hosted,
    hostedPerMillionTokens: perMillion(hosted, input.tokens),
  };
}
