/** Names that people would mistake for the operator or the product. */
const RESERVED = [
  'abuse',
  'account',
  'accounts',
  'admin',
  'administration',
  'administrator',
  'billing',
  'gatehouse',
  'help',
  'helpdesk',
  'hostmaster',
  'info',
  'mailer-daemon',
  'moderator',
  'noreply',
  'no-reply',
  'operator',
  'owner',
  'postmaster',
  'root',
  'security',
  'staff',
  'superuser',
  'support',
  'system',
  'sysadmin',
  'team',
  'webmaster',
]

/** Characters that look alike in common fonts, and separators that are easily overlooked. */
const LOOK_ALIKES: [RegExp, string][] = [
  [/[._-]/g, ''],
  [/0/g, 'o'],
  [/[1i|]/g, 'l'],
  [/3/g, 'e'],
  [/4/g, 'a'],
  [/5/g, 's'],
  [/7/g, 't'],
  [/8/g, 'b'],
  [/rn/g, 'm'],
  [/vv/g, 'w'],
]

/**
 * Returns the same text for names that look alike. The skeleton of [UTS
 * 39](https://www.unicode.org/reports/tr39/#Confusable_Detection) is similar. Letters of other scripts need
 * no rule, because user names are ASCII.
 */
const skeleton = (name: string): string =>
  LOOK_ALIKES.reduce((text, [pattern, by]) => text.replace(pattern, by), name.toLowerCase())

const reserved = new Set(RESERVED.map(skeleton))

/** True for a name that looks like a reserved name, or like one of `others`. */
export const looksTaken = (name: string, others: readonly string[]): boolean => {
  const look = skeleton(name)
  return reserved.has(look) || others.some(other => skeleton(other) === look)
}
