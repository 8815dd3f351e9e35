/** Languages in which the family name comes first. */
export const familyFirst: ReadonlySet<string> = new Set(['hu', 'ja', 'ko', 'vi', 'zh'])
