import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Context } from '#src/context.ts'
import { type KeyRow, listKeys } from '#src/tokens/key-store.ts'

type Base = Pick<Context, 'store' | 'master'>

/** Whether the private key opens and is the one of the published public key. */
const isWhole = ({ master }: Base, { id, private_key, public_jwk }: KeyRow): boolean => {
  try {
    const pkcs8 = master.open(private_key, id)
    const key = createPublicKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }))
    return Bun.deepEquals(key.export({ format: 'jwk' }), public_jwk)
  } catch {
    return false
  }
}

/** What is wrong with the signing keys, a line each, and how many there are. */
export const checkKeys = async (base: Base): Promise<{ findings: string[]; count: number }> => {
  const keys = await base.store.read(listKeys)
  const broken = keys.filter(key => !isWhole(base, key))
  return {
    findings: broken.map(({ id }) => `keys: ${id} cannot be opened, or is not the published one`),
    count: keys.length,
  }
}
