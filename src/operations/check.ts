import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { storedAfter } from '#src/audit/integrity-store.ts'
import { macOf } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { openSecret } from '#src/directory/identity-providers/secret.ts'
import { openStoredKey } from '#src/federation/saml/key.ts'
import { findSamlKey } from '#src/federation/saml/store.ts'
import { openTotpSecret } from '#src/sign-in/totp.ts'
import { isDamage } from '#src/storage/sqlite/inspect.ts'
import type { Queries } from '#src/storage/store.ts'
import { type KeyRow, listKeys } from '#src/tokens/key-store.ts'
import { openWebhookSecret } from '#src/webhooks/signature.ts'
import { sealedFactors, sealedProviders, sealedWebhooks } from './sealed-store.ts'

/** True when the private key can be decrypted and matches the published public key. */
const isWhole = ({ master }: Core, { id, private_key, public_jwk }: KeyRow): boolean => {
  try {
    const pkcs8 = master.open(private_key, id)
    const key = createPublicKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }))
    return Bun.deepEquals(key.export({ format: 'jwk' }), public_jwk)
  } catch {
    return false
  }
}

/**
 * Checks the signing keys: returns a line for each broken key, and the number of keys.
 *
 * @throws Error when the database cannot be read, for example because a table is locked. This is no damage
 */
export const checkKeys = async (base: Core): Promise<{ findings: string[]; count: number }> => {
  let keys: KeyRow[]
  try {
    keys = await base.store.read(listKeys)
  } catch (error) {
    // JSON.parse throws a SyntaxError for a changed text.
    if (!(error instanceof SyntaxError) && !isDamage(error)) throw error
    return { findings: ['keys: the stored keys cannot be read'], count: 0 }
  }
  const broken = keys.filter(key => !isWhole(base, key))
  return {
    findings: broken.map(({ id }) => `keys: ${id} cannot be opened, or does not match its published key`),
    count: keys.length,
  }
}

/**
 * Number of rows in one read. With this number a large table needs few reads, and the rows take less than 1
 * MB of memory.
 */
const BATCH = 1_000
/**
 * Maximum number of findings of each kind (secrets, events) in the report. Many findings usually have one
 * cause, such as a wrong key.
 */
const MAX_FINDINGS = 20

const opens = (open: () => unknown): boolean => {
  try {
    open()
    return true
  } catch {
    return false
  }
}

/** Calls `visit` for each row in the order of ids. `page` reads the rows after an id. */
const forEachRow = async <Row extends { id: string }>(
  { store }: Core,
  page: (q: Queries, after: string, limit: number) => Promise<Row[]>,
  visit: (row: Row) => void,
): Promise<void> => {
  for (let after = ''; ; ) {
    const rows = await store.read(q => page(q, after, BATCH))
    for (const row of rows) visit(row)
    after = rows.at(-1)?.id ?? ''
    if (rows.length < BATCH) return
  }
}

/**
 * Opens the secrets of webhooks, identity providers and authenticator apps, and the private key for SAML.
 * Also checks that the private key belongs to the stored certificate. Returns a line for each finding, at
 * most `MAX_FINDINGS`, and the number of secrets.
 */
export const checkSealed = async (base: Core): Promise<{ findings: string[]; count: number }> => {
  const findings: string[] = []
  let count = 0
  const tryTo = (name: string, open: () => unknown, fault = 'cannot be opened'): void => {
    count++
    if (!opens(open) && findings.length < MAX_FINDINGS) findings.push(`${name} ${fault}`)
  }
  await forEachRow(base, sealedWebhooks, row =>
    tryTo(`secrets: the secret of the webhook ${row.id}`, () => openWebhookSecret(base, row)),
  )
  await forEachRow(base, sealedProviders, ({ id, secret: client_secret }) =>
    tryTo(`secrets: the secret of the provider ${id}`, () => openSecret(base, { id, client_secret })),
  )
  await forEachRow(base, sealedFactors, ({ id, user_id, secret }) =>
    tryTo(`secrets: the secret of the authenticator app ${id} of ${user_id}`, () =>
      openTotpSecret(base, { user_id, secret: secret ?? new Uint8Array() }),
    ),
  )
  const stored = await base.store.read(findSamlKey)
  if (stored)
    tryTo(
      'secrets: the private key for SAML',
      () => {
        const { private_key, certificate } = openStoredKey(base, stored)
        const { publicKey } = new X509Certificate(Buffer.from(certificate, 'base64'))
        if (!publicKey.equals(createPublicKey(private_key))) throw new Error('another key')
      },
      'cannot be opened, or does not belong to its certificate',
    )
  return { findings, count }
}

/**
 * Checks the MAC of each event. Returns a line for each changed event, at most `MAX_FINDINGS`, and the number
 * of events. A deleted event cannot be detected, because each MAC covers only one event. A chain of MACs
 * would break when the events of a deleted user are removed.
 */
export const checkEvents = async ({
  store,
  master,
}: Core): Promise<{ findings: string[]; count: number }> => {
  const findings: string[] = []
  for (let after = 0, count = 0; ; ) {
    const rows = await store.read(q => storedAfter(q, after, BATCH))
    for (const row of rows) {
      const { seq, mac } = row
      if (mac !== macOf(master, row) && findings.length < MAX_FINDINGS)
        findings.push(`events: event ${seq} differs from what was recorded`)
      after = seq
    }
    count += rows.length
    if (rows.length < BATCH) return { findings, count }
  }
}
