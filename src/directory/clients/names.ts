import type { Core } from '#src/context.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { CONSOLE_NAME } from '#src/lib/ids.ts'
import { fold } from '#src/lib/text.ts'
import { findClientNames } from './store.ts'

/**
 * Letters and the digits 0 and 1, each with the Latin letter that it resembles in common fonts:
 * https://www.unicode.org/reports/tr39/#Confusable_Detection
 */
const [others, latin] = ['01iаеорсухіјѕһԁԛԝкмтвнαβεικνορτυχ', 'ollaeopcyxljshdqwkmtbhabelkvoptux']

/**
 * Returns a name as people see it at a quick look: in lower case and without accents, spaces, punctuation and
 * invisible characters. Latin letters replace the letters that resemble them.
 */
const lookOf = (name: string): string =>
  fold(name)
    .normalize('NFD')
    .replace(/[\p{M}\p{C}\p{Z}\p{P}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/./gu, letter => latin?.[others?.indexOf(letter) ?? -1] ?? letter)

/**
 * True when the name of a dynamic client looks like the organization, a registered application of the
 * organization, the console or a host. Also true for a name without a visible letter or digit. The consent
 * page then shows the host in place of the name, because nobody has checked the name.
 */
export const isMisleading = async (
  { store }: Core,
  { id, name, display_name }: Pick<Organization, 'id' | 'name' | 'display_name'>,
  given: string,
): Promise<boolean> => {
  const look = lookOf(given)
  const known = [name, display_name, CONSOLE_NAME, ...(await findClientNames(store, id))]
  const isHost = /[\p{L}\p{N}][.。]\p{L}{2,}/u.test(fold(given))
  return look === '' || isHost || known.some(other => lookOf(other) === look)
}
