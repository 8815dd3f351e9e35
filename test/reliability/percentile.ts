/** Returns a percentile of the values: `share` is 0.99 for the p99. Returns NaN if there are no values. */
export const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * share), values.length - 1)] ??
  Number.NaN
