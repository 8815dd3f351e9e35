/** Begins the ids of public clients that registered themselves. No chosen id has an underscore. */
export const PUBLIC_DYNAMIC = 'dcr_'
/** Begins the ids of confidential clients that registered themselves. */
export const CONFIDENTIAL_DYNAMIC = 'dcs_'

/** Begins the ids of clients that registered themselves with an initial access token of an organization. */
export const TOKEN_DYNAMIC = 'dct_'

/** The beginnings of ids of clients that registered themselves, all of four characters. */
export const dynamicPrefixes: readonly string[] = [PUBLIC_DYNAMIC, CONFIDENTIAL_DYNAMIC, TOKEN_DYNAMIC]

/** True for the id of a client that registered itself. */
export const isDynamicId = (client_id: string): boolean => dynamicPrefixes.includes(client_id.slice(0, 4))

/** True for the id of a client that registered itself and belongs to no organization. */
export const isUnowned = (client_id: string): boolean =>
  isDynamicId(client_id) && !client_id.startsWith(TOKEN_DYNAMIC)

/** True when any web page may read answers to this client: it has no secret, and no cookie is involved. */
export const isOpenToPages = (client_id: string): boolean => client_id.startsWith(PUBLIC_DYNAMIC)
