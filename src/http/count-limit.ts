/**
 * Number of rows at which the count of a list stops, because counting a million rows for each page costs too
 * much. A total of `COUNT_LIMIT + 1` means more than `COUNT_LIMIT`. The total of an unfiltered list may come
 * from a counter. Such a total has no limit.
 */
export const COUNT_LIMIT = 10_000
