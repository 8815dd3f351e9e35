import { createPrivateKey, createPublicKey } from 'node:crypto'
import { storedAfter } from '#src/audit/integrity-store.ts'
import { type EventText, macOf } from '#src/audit/record.ts'
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
  let keys: KeyRow[]
  try {
    keys = await base.store.read(listKeys)
  } catch {
    return { findings: ['keys: a row cannot be read'], count: 0 }
  }
  const broken = keys.filter(key => !isWhole(base, key))
  return {
    findings: broken.map(({ id }) => `keys: ${id} cannot be opened, or is not the published one`),
    count: keys.length,
  }
}

const BATCH = 1_000
/** More findings than these would say nothing new. */
const MOST = 20

/** Which events are not what was recorded, a line each, and how many there are. An event that is gone leaves no trace here. */
export const checkEvents = async ({
  store,
  master,
}: Base): Promise<{ findings: string[]; count: number }> => {
  const findings: string[] = []
  for (let after = 0, count = 0; ; ) {
    const rows = await store.read(q => storedAfter(q, after, BATCH))
    for (const row of rows) {
      const { seq, mac } = row
      const said: EventText = [
        row.id,
        row.type,
        row.actor_id,
        row.actor_email,
        row.target_id,
        row.target_type,
        row.organization_id,
        row.ip_address,
        row.user_agent,
        row.timestamp,
        row.metadata,
        row.subject_id,
      ]
      if (mac !== macOf(master, said) && findings.length < MOST)
        findings.push(`events: number ${seq} is not what was recorded`)
      after = seq
    }
    count += rows.length
    if (rows.length < BATCH) return { findings, count }
  }
}
