import type { Core } from '#src/context.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { CONSOLE_NAME, type OrganizationId } from '#src/lib/ids.ts'
import { fold } from '#src/lib/text.ts'
import { othersRun } from '#src/lib/turn.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { host } from '#src/protocol/oauth/redirect-uri.ts'
import { cached } from '#src/storage/cache.ts'
import { type Client, listClientNames } from './store.ts'

/**
 * Returns the name of a client for a page or mail other than the consent page. The name of a dynamic client
 * is unchecked, so the host of its metadata document or redirect URI is returned.
 */
export const checkedName = (client: Client, redirect_uri = client.redirect_uris[0] ?? ''): string => {
  if (!isDynamic(client)) return client.name || client.client_id
  return host(client.from_document ? client.client_id : redirect_uri)
}

/**
 * Letters and the digits 0 and 1 (`others`), and the Latin letters that they resemble in common fonts
 * (`latin`): https://www.unicode.org/reports/tr39/#Confusable_Detection
 */
const [others, latin] = ['01iаеорсухіјѕһԁԛԝкмтвнαβεικνορτυχ', 'ollaeopcyxljshdqwkmtbhabelkvoptux']

/**
 * Returns a name as people see it at a glance: in lower case and without accents, spaces, punctuation,
 * symbols and invisible characters. Latin letters replace the letters that resemble them.
 */
const lookOf = (name: string): string =>
  fold(name)
    .normalize('NFD')
    .replace(/[\p{M}\p{C}\p{Z}\p{P}\p{S}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/./gu, letter => latin?.[others?.indexOf(letter) ?? -1] ?? letter)

/** Number of names that are processed in one turn of the event loop. One turn takes about 3 ms. */
const SLICE = 300

/** Returns the result of {@link lookOf} for the name of each registered client of the organization. */
const findLooks = cached('clients', async (q, organization_id): Promise<ReadonlySet<string>> => {
  const looks = new Set<string>()
  const names = await listClientNames(q, organization_id as OrganizationId)
  for (const [i, name] of names.entries()) {
    if (i % SLICE === SLICE - 1) await othersRun()
    looks.add(lookOf(name))
  }
  return looks
})

/**
 * True when the name of a dynamic client looks like a host, or like the name of the organization, of one of
 * its registered applications or of the console. Also true for a name that contains no letter or digit. The
 * consent page shows the host in place of a misleading name, because nobody has checked the name.
 */
export const isMisleading = async (
  { store }: Core,
  { id, name, display_name }: Pick<Organization, 'id' | 'name' | 'display_name'>,
  given: string,
): Promise<boolean> => {
  const look = lookOf(given)
  const isHost = /[\p{L}\p{N}][.。]\p{L}{2,}/u.test(fold(given))
  const isKnown = [name, display_name, CONSOLE_NAME].some(other => lookOf(other) === look)
  return look === '' || isHost || isKnown || (await findLooks(store, id)).has(look)
}
