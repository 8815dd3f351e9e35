import type { Core } from '#src/context.ts'
import type { IdentityProvider } from './types.ts'

const labelOf = (id: string): string => `identity_provider:${id}`

/** Returns the client secret of Gatehouse at the provider, or '' if none is stored. */
export const openSecret = (
  { master }: Core,
  { id, client_secret }: Pick<IdentityProvider, 'id' | 'client_secret'>,
): string => (client_secret ? master.open(client_secret, labelOf(id)).toString() : '')

/** Returns the sealed secret as it is stored. */
export const sealClientSecret = ({ master }: Core, id: string, secret: string): Buffer | null =>
  secret ? master.seal(Buffer.from(secret), labelOf(id)) : null
