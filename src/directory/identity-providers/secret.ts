import type { Core } from '#src/context.ts'
import type { IdentityProvider } from './types.ts'

const labelOf = (id: string): string => `identity_provider:${id}`

/** Returns the secret of Gatehouse at the provider. Returns '' if Gatehouse has no secret there. */
export const openSecret = (
  { master }: Core,
  { id, client_secret }: Pick<IdentityProvider, 'id' | 'client_secret'>,
): string => (client_secret ? master.open(client_secret, labelOf(id)).toString() : '')

/** Returns the secret in the form of its column. */
export const sealClientSecret = ({ master }: Core, id: string, secret: string): Buffer | null =>
  secret ? master.seal(Buffer.from(secret), labelOf(id)) : null
