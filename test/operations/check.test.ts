import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { eq } from 'drizzle-orm'
import { storedAfter } from '#src/audit/integrity-store.ts'
import { hostActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { selfSigned } from '#src/dev/self-signed.ts'
import { findSamlKey } from '#src/federation/saml/store.ts'
import { newId } from '#src/lib/ids.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { checkEvents, checkKeys, checkSealed } from '#src/operations/check.ts'
import { sealSecret } from '#src/sign-in/totp.ts'
import { inspectPostgres } from '#src/storage/postgres/inspect.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { putSetting } from '#src/storage/settings.ts'
import { backUp } from '#src/storage/sqlite/backup.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { startApp } from '#test/support/app.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addUser } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))

/**
 * Returns an instance with some history, and a backup of its database. A backup has no old copies of moved
 * rows.
 */
const withHistory = async () => {
  const app = await startApp()
  for (let i = 0; i < 20; i++) await addUser(app, `user-${i}`)
  const path = join(folder, `${crypto.randomUUID()}.db`)
  await backUp(Reflect.get(app.context.store, 'path'), path)
  return { context: app.context, path }
}

/** Returns the findings of `check` for the file. An error of the engine counts as a finding. */
const findingsOf = async (path: string, context: Context): Promise<string[]> => {
  try {
    {
      using db = new Database(path, { readonly: true })
      const { findings } = inspect(db)
      if (findings.length > 0) return findings
    }
    const store = await openSqlite({ path, migrate: false })
    try {
      const copy = { ...context, store }
      return [...(await checkKeys(copy)).findings, ...(await checkEvents(copy)).findings]
    } finally {
      await store.close()
    }
  } catch (error) {
    return [String(error)]
  }
}

test('a healthy database has no findings', async () => {
  const { path, context } = await withHistory()
  expect(await findingsOf(path, context)).toEqual([])
  expect((await checkEvents(context)).count).toBeGreaterThan(20)
})

test('an event changed behind the server, its trigger removed meanwhile', async () => {
  const { path, context } = await withHistory()
  const [first] = await context.store.read(q => storedAfter(q, 0, 1))
  for (const change of [
    "actor_id = 'somebody'",
    'timestamp = timestamp + 1',
    "metadata = '{}'",
    'actor_email = NULL, actor_id = NULL',
  ]) {
    const copy = `${path}.changed`
    copyFileSync(path, copy)
    {
      using db = new Database(copy)
      const [[trigger] = []] = db
        .query("SELECT sql FROM sqlite_schema WHERE name = 'events_immutable'")
        .values()
      db.run('DROP TRIGGER events_immutable')
      db.run(`UPDATE events SET ${change}, type = 'user.login' WHERE seq = ${first?.seq}`)
      db.run(String(trigger))
    }
    expect(await findingsOf(copy, context)).toEqual([
      `events: event ${first?.seq} differs from what was recorded`,
    ])
  }
})

test('R-06 two hundred flipped bytes in structure, events and keys are each found', async () => {
  const { path, context } = await withHistory()
  const whole = readFileSync(path)
  const [macs, keys] = ((): [string[], Uint8Array[]] => {
    using db = new Database(path, { readonly: true })
    const column = (query: string) => db.query(query).values().flat()
    return [
      column('SELECT mac FROM events') as string[],
      column('SELECT private_key FROM signing_keys') as Uint8Array[],
    ]
  })()
  const page = whole.readUInt16BE(16)
  const pages = whole.length / page - 1
  // The MAC of an event is at the end of its row, after the content. Unused space of earlier pages may have
  // old copies.
  const places: ((n: number) => number)[] = [
    n => page * (1 + ((n * 7) % pages)) + (n % 2),
    n => whole.lastIndexOf(macs[n % macs.length] ?? '') + 42 - ((n * 5) % 150),
    n => whole.lastIndexOf(keys[n % keys.length] ?? '') + ((n * 11) % 100),
  ]
  const copy = `${path}.flipped`
  const missed: string[] = []
  for (let n = 0; n < 200; n++) {
    const offset = places[n % places.length]?.(n) ?? 0
    const flipped = Buffer.from(whole)
    flipped[offset] = (whole[offset] ?? 0) ^ (1 << (n % 8))
    writeFileSync(copy, flipped)
    if ((await findingsOf(copy, context)).length === 0) missed.push(`${n % 3} at ${offset}`)
  }
  expect(missed).toEqual([])
}, 60_000)

test('secrets sealed by another key, or moved to another row, are named and never shown', async () => {
  const app = await startApp()
  const { context } = app
  const alice = await addUser(app, 'alice')
  const bob = await addUser(app, 'bob')
  const { body: provider } = await app.admin('POST', '/identity-providers', {
    type: 'oidc',
    alias: 'corp',
    name: 'Corp',
    issuer: 'https://id.corp.example',
    client_id: 'us',
    client_secret: 'the-secret-there',
  })
  const factors = await Promise.all(
    [alice, bob].map(async ({ id: user_id }) => {
      const factor = {
        id: newId('fac', context.clock.now()),
        user_id,
        type: 'totp' as const,
        name: 'phone',
        secret: sealSecret(context, user_id, 'JBSWY3DPEHPK3PXP'),
        transports: [],
        created_at: 1,
      }
      await context.store.write(tx => tx.insert(tx.tables.factors).values(factor))
      return factor
    }),
  )
  await context.samlKey()
  expect(await checkSealed(context)).toEqual({ findings: [], count: 4 })
  expect((await checkSealed({ ...context, master: masterKey(Buffer.alloc(32, 8)) })).findings).toEqual([
    `secrets: the secret of the provider ${provider.id} cannot be opened`,
    ...factors
      .map(
        ({ id, user_id }) =>
          `secrets: the secret of the authenticator app ${id} of ${user_id} cannot be opened`,
      )
      .sort(),
    'secrets: the private key for SAML cannot be opened, or does not belong to its certificate',
  ])
  // Stores Alice's secret in Bob's row. The secret opens only with Alice's user id.
  await context.store.write(async tx => {
    const { factors: t } = tx.tables
    await tx
      .update(t)
      .set({ secret: factors[0]?.secret ?? null })
      .where(eq(t.user_id, bob.id))
  })
  expect((await checkSealed(context)).findings).toEqual([
    `secrets: the secret of the authenticator app ${factors[1]?.id} of ${bob.id} cannot be opened`,
  ])
})

test('a private key for SAML that does not belong to its certificate is named', async () => {
  const { context } = await startApp()
  await context.samlKey()
  const stored = await context.store.read(findSamlKey)
  const { raw } = new X509Certificate((await selfSigned('localhost')).cert)
  const other = { ...stored, certificate: raw.toString('base64') }
  await context.store.write(tx => putSetting(tx, 'saml_key', other, context.clock.now()))
  expect(await checkSealed(context)).toEqual({
    findings: ['secrets: the private key for SAML cannot be opened, or does not belong to its certificate'],
    count: 1,
  })
})

test('events and secrets beyond the first 1,000 are checked', async () => {
  const app = await startApp()
  const { context } = app
  const { id: user_id } = await addUser(app, 'alice')
  const wrong = { ...context, master: masterKey(Buffer.alloc(32, 8)) }
  const factors = Array.from({ length: 1_001 }, (_, i) => ({
    id: newId('fac', context.clock.now() + i),
    user_id,
    type: 'totp' as const,
    name: 'phone',
    secret: sealSecret(i < 1_000 ? context : wrong, user_id, 'JBSWY3DPEHPK3PXP'),
    transports: [],
    created_at: 1,
  }))
  const event = { ...hostActor, type: 'user.updated', target_id: user_id, target_type: 'user' } as const
  await context.store.write(async tx => {
    for (const factor of factors) await tx.insert(tx.tables.factors).values(factor)
    for (let i = 0; i < 1_001; i++)
      await record(i < 1_000 ? context : wrong, tx, { ...event, organization_id: 'org_default' })
  })
  expect(await checkSealed(context)).toEqual({
    findings: [
      `secrets: the secret of the authenticator app ${factors[1_000]?.id} of ${user_id} cannot be opened`,
    ],
    count: 1_001,
  })
  const { findings, count } = await checkEvents(context)
  expect(findings).toEqual([expect.stringMatching(/^events: event \d+ differs from what was recorded$/)])
  expect(count).toBe(await context.store.read(q => q.$count(q.tables.events)))
})

testOnPostgres('keys that cannot be decoded are damage, and a locked table is not', async () => {
  const { context } = await startApp()
  const { url, drop } = await temporaryPostgres()
  const [store, hasty] = [await openPostgres({ url }), await openPostgres({ url, stall: 500 })]
  const there = { ...context, store }
  const sql = new SQL({ url, max: 1 })
  await sql.begin(async other => {
    await other.unsafe('LOCK TABLE signing_keys IN ACCESS EXCLUSIVE MODE')
    await expect(checkKeys({ ...context, store: hasty })).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      status: 503,
    })
    await expect(inspectPostgres(url, 200)).rejects.toMatchObject({
      message: expect.stringContaining('the database is locked; a restore or migrate-to may be running'),
      exit_code: 75,
    })
  })
  expect(await checkKeys(there)).toEqual({ findings: [], count: 0 })
  const private_key = Buffer.alloc(1)
  const key = { id: newId('key', 0), alg: 'ES256', public_jwk: {}, private_key, created_at: 0, active_at: 0 }
  await store.write(tx => tx.insert(tx.tables.signing_keys).values(key))
  await sql.unsafe("UPDATE signing_keys SET public_jwk = '{'")
  expect(await checkKeys(there)).toEqual({ findings: ['keys: the stored keys cannot be read'], count: 0 })
  await sql.close()
  for (const each of [store, hasty]) await each.close()
  await drop()
})
