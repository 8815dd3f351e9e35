/**
 * Number of matches up to which a filtered total is exact, because counting a million rows for each page
 * costs too much. A total of `COUNT_LIMIT + 1` means more than `COUNT_LIMIT`.
 */
export const COUNT_LIMIT = 10_000
