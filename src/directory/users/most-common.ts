import { dictionary } from '@zxcvbn-ts/language-common'

/**
 * The passwords that were found most often in what leaked of other sites, the most frequent first, one a line. A Bun macro: it
 * runs while its caller is bundled, so that the executable carries so many and no more.
 * https://github.com/zxcvbn-ts/zxcvbn (MIT), which has them from the lists that https://github.com/dropbox/zxcvbn made
 */
export const mostCommon = (count: number): string => dictionary['passwords-common'].slice(0, count).join('\n')
