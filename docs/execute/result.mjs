// Counts and failures of an execution.

export const emptyResult = () => ({ executed: 0, compared: 0, skipped: [], failures: [] });

/** Adds the counts and failures of a part. */
export function add(whole, part) {
  whole.executed += part.executed;
  whole.compared += part.compared;
  whole.skipped.push(...part.skipped);
  whole.failures.push(...part.failures);
}
