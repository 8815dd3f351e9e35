/** Id prefix of public clients that registered themselves without an initial access token. */
export const PUBLIC_DYNAMIC = 'dcr_'
/** Id prefix of confidential clients that registered themselves without an initial access token. */
export const CONFIDENTIAL_DYNAMIC = 'dcs_'

/** Id prefix of clients that registered themselves with an initial access token of an organization. */
export const TOKEN_DYNAMIC = 'dct_'

/**
 * Id prefixes of clients that registered themselves. Each prefix has four characters. Administrators cannot
 * choose an id that begins with one of these prefixes, because the id alone tells how a client was
 * registered.
 */
export const dynamicPrefixes: readonly string[] = [PUBLIC_DYNAMIC, CONFIDENTIAL_DYNAMIC, TOKEN_DYNAMIC]

/**
 * Id prefix of clients whose id is the URL of a metadata document. A client that an administrator registered
 * can also have such an id.
 */
export const DOCUMENT_DYNAMIC = 'https://'

/** The fields that tell how a client was registered. */
export type Origin = {
  readonly client_id: string
  /**
   * Set when the client's id is the URL of its metadata document and no administrator registered the client.
   */
  readonly from_document?: true | undefined
}

/** True for the id of a client that registered itself. */
export const registeredItself = (client_id: string): boolean =>
  dynamicPrefixes.includes(client_id.slice(0, 4))

/**
 * True for a client that no administrator registered: it registered itself, or a metadata document describes
 * it.
 */
export const isDynamic = ({ client_id, from_document }: Origin): boolean =>
  from_document === true || registeredItself(client_id)

/**
 * True for the id of a client that registered itself, and for an id that may be the URL of a metadata
 * document.
 */
export const mayBeDynamic = (client_id: string): boolean =>
  registeredItself(client_id) || client_id.startsWith(DOCUMENT_DYNAMIC)

/** True for a dynamic client that belongs to no organization. */
export const isUnowned = (client: Origin): boolean =>
  isDynamic(client) && !client.client_id.startsWith(TOKEN_DYNAMIC)

/**
 * True for a public client that registered itself without an initial access token. Any web page may read
 * answers to this client, because the client has no secret and uses no cookie.
 */
export const isOpenToPages = (client_id: string): boolean => client_id.startsWith(PUBLIC_DYNAMIC)
