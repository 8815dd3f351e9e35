/** Returns the value that this share of the values does not exceed; NaN without values. */
export const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * share), values.length - 1)] ??
  Number.NaN
