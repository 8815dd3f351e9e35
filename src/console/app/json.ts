/** Parses JSON. Throws on a number beyond the range, such as 1e400, because it would be sent as null. */
export const parseJson = (typed: string): unknown =>
  JSON.parse(typed, (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError()
    return value
  })
