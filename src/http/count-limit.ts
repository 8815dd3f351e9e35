/**
 * Number of matches at which the count of a filtered list stops, because counting a million rows for each
 * page costs too much. A total of `COUNT_LIMIT + 1` means more than `COUNT_LIMIT`.
 */
export const COUNT_LIMIT = 10_000
