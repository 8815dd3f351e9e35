import { dictionary } from '@zxcvbn-ts/language-common'

/**
 * Returns the most frequent leaked passwords, one per line, the most frequent first. This is a Bun macro,
 * which runs at bundle time, so the executable contains only `count` of the passwords. Source:
 * https://github.com/zxcvbn-ts/zxcvbn (MIT), based on lists of https://github.com/dropbox/zxcvbn
 */
export const mostCommon = (count: number): string => dictionary['passwords-common'].slice(0, count).join('\n')
