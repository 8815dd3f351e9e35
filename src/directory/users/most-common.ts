import { dictionary } from '@zxcvbn-ts/language-common'

/**
 * Returns the most frequent leaked passwords, one per line, the most frequent first. A Bun macro: it runs at
 * bundle time, so the executable contains only `count` of them. From https://github.com/zxcvbn-ts/zxcvbn
 * (MIT), based on lists of https://github.com/dropbox/zxcvbn
 */
export const mostCommon = (count: number): string => dictionary['passwords-common'].slice(0, count).join('\n')
