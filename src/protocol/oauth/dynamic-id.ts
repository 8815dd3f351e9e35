/** Begins the ids of public clients that registered themselves. No chosen id has an underscore. */
export const PUBLIC_DYNAMIC = 'dcr_'
/** Begins the ids of confidential clients that registered themselves. */
export const CONFIDENTIAL_DYNAMIC = 'dcs_'

/** True for the id of a client that registered itself. */
export const isDynamicId = (client_id: string): boolean =>
  client_id.startsWith(PUBLIC_DYNAMIC) || client_id.startsWith(CONFIDENTIAL_DYNAMIC)

/** True when any web page may read answers to this client: it has no secret, and no cookie is involved. */
export const isOpenToPages = (client_id: string): boolean => client_id.startsWith(PUBLIC_DYNAMIC)
