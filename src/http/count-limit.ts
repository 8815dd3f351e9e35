/** Maximum of an exact filtered total. A total one above it means "more than this". */
export const COUNT_LIMIT = 10_000
