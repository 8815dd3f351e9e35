import { expect, spyOn, test } from 'bun:test'
import * as fs from 'node:fs'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { type Config, loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { permissions } from '#src/lib/permission.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { openCore } from '#src/operations/core.ts'
import { createInstance } from '#src/operations/first-start.ts'
import { START } from '#test/support/app.ts'
import { freshStore } from '#test/support/store.ts'
import { xmlReader } from '#test/support/xml-reader.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-first-start-'))
process.on('exit', () => rmSync(data_dir, { recursive: true, force: true }))

/**
 * Returns an instance before its first start. Each call of `start` runs one start with the given settings.
 */
const instance = async () => {
  const store = await freshStore()
  let now = START
  const start = (settings: Partial<Config> = {}) => {
    now += 1000
    return createInstance(
      openCore({
        config: { ...loadConfig({}).config, argon2_memory: 64, argon2_time: 1, data_dir, ...settings },
        store,
        clock: { now: () => now },
        log: silentLog,
        fetch: () => Promise.reject(new Error('nothing goes out')),
        xml: xmlReader,
        master: masterKey(Buffer.alloc(32, 7)),
      }),
    )
  }
  const rows = () =>
    store.read(async q => {
      const { organizations, roles, clients, users, events } = q.tables
      return {
        organizations: await q.select().from(organizations),
        roles: await q.select().from(roles),
        clients: await q.select().from(clients),
        users: await q.select().from(users),
        events: (await q.select().from(events)).map(event => [event.type, event.actor_id, event.target_id]),
      }
    })
  return { store, start, rows }
}

const allScopes = [...permissions, 'admin']
const admin_client_secret = 'a-secret-from-the-settings'

test('RUN-23 a first start creates the default organization, its roles, and the admin client with a secret in a private file', async () => {
  const { start, rows } = await instance()
  const first = await start()
  const file = join(data_dir, 'admin-client.json')
  expect(first).toEqual({ admin_client_file: file, needs_admin: true })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const { client_id, client_secret } = JSON.parse(readFileSync(file, 'utf8'))
  const { organizations, roles, clients, users, events } = await rows()
  expect(organizations).toMatchObject([{ id: 'org_default', slug: 'default', settings: {} }])
  expect(roles.map(role => [role.id, role.name, role.permissions, role.built_in])).toEqual([
    ['role_admin', 'admin', ['*'], true],
    ['role_user', 'user', ['profile:read', 'profile:update'], true],
  ])
  expect(client_id).toBe('gatehouse-admin')
  expect(clients).toMatchObject([
    {
      client_id,
      organization_id: 'org_default',
      type: 'confidential',
      grant_types: ['client_credentials'],
      scopes: allScopes,
      secret_hash: hashSecret(client_secret),
    },
  ])
  expect([users, events]).toEqual([[], []])
})

test('the file with the secret is on the disk before the client is stored', async () => {
  const { store, start } = await instance()
  const steps: string[] = []
  const { write } = store
  const { writeFileSync, renameSync, fsyncSync } = fs
  const spies = [
    spyOn(store, 'write').mockImplementation(((body: Parameters<typeof write>[0]) => {
      steps.push('transaction')
      return write.call(store, body)
    }) as typeof write),
    spyOn(fs, 'writeFileSync').mockImplementation((...args) => {
      steps.push(`write ${JSON.stringify(args[2])}`)
      writeFileSync(...args)
    }),
    spyOn(fs, 'renameSync').mockImplementation((...args) => {
      steps.push('rename')
      renameSync(...args)
    }),
    spyOn(fs, 'fsyncSync').mockImplementation(file => {
      if (fs.fstatSync(file).ino === statSync(data_dir).ino) steps.push('sync the folder')
      fsyncSync(file)
    }),
  ]
  await start().finally(() => {
    for (const spy of spies) spy.mockRestore()
  })
  expect(steps).toEqual([
    'transaction',
    `write ${JSON.stringify({ mode: 0o600, flag: 'wx', flush: true })}`,
    'rename',
    'sync the folder',
    'transaction',
    'transaction',
  ])
})

test('a second start changes nothing, and generates no new secret', async () => {
  const { start, rows } = await instance()
  await start()
  const before = await rows()
  expect(await start()).toEqual({ needs_admin: true })
  expect(await rows()).toEqual(before)
})

test('a secret in the settings is applied at each start, and written to no file', async () => {
  const { start, rows } = await instance()
  const hash = async () => (await rows()).clients[0]?.secret_hash
  expect(await start({ admin_client_secret, admin_client_id: 'root' })).toEqual({ needs_admin: true })
  expect(await hash()).toBe(hashSecret(admin_client_secret))
  await start({ admin_client_secret: 'another', admin_client_id: 'root' })
  expect(await hash()).toBe(hashSecret('another'))
  await start({ admin_client_id: 'root' })
  expect(await hash()).toBe(hashSecret('another'))
  expect((await rows()).events).toEqual([['client.secret_regenerated', null, 'root']])
})

test('RUN-24 scopes that are new in this version are added; removed ones stay removed', async () => {
  const { store, start, rows } = await instance()
  await start()
  const known = allScopes.filter(scope => scope !== 'groups:read')
  await store.write(async tx => {
    const { clients, settings } = tx.tables
    await tx.update(clients).set({ scopes: ['users:read'] })
    await tx.update(settings).set({ value: known }).where(eq(settings.name, 'known_scopes'))
  })
  await start()
  expect((await rows()).clients[0]?.scopes).toEqual(['users:read', 'groups:read'])
  expect((await rows()).events).toEqual([['client.updated', null, 'gatehouse-admin']])
  const before = await rows()
  await start()
  expect(await rows()).toEqual(before)
})

test('a deleted admin client is created again only with a secret in the settings', async () => {
  const { store, start, rows } = await instance()
  await start()
  await store.write(async tx => {
    await tx.delete(tx.tables.clients)
  })
  await start()
  expect((await rows()).clients).toEqual([])
  await start({ admin_client_secret })
  expect((await rows()).clients).toMatchObject([{ client_id: 'gatehouse-admin', scopes: allScopes }])
})

const admin = { admin_username: 'root', admin_email: 'root@example.com', admin_password: 'Correct-horse-7' }

test('the first admin user is created only at the first start', async () => {
  const { store, start, rows } = await instance()
  expect(await start(admin)).toMatchObject({ needs_admin: false })
  const { users, roles, events } = await rows()
  expect(users).toMatchObject([
    { username: 'root', email: 'root@example.com', email_verified: true, organization_id: 'org_default' },
  ])
  expect(users[0]?.password_hash).toStartWith('$argon2id$')
  expect(roles.find(role => role.id === 'role_admin')?.user_count).toBe(1)
  expect(events).toEqual([['user.created', null, users[0]?.id ?? '']])
  await store.write(async tx => {
    await tx.delete(tx.tables.users)
  })
  expect(await start(admin)).toEqual({ needs_admin: true })
  // A changed secret of the admin client makes a later start apply the settings again.
  expect(await start({ ...admin, admin_client_secret })).toEqual({ needs_admin: true })
  expect((await rows()).users).toEqual([])
})

test('settings of an impossible client or user are refused by name, before anything is stored', async () => {
  const { start, rows } = await instance()
  const bad: [Partial<Config>, string][] = [
    [{ admin_client_id: 'usr_x' }, 'admin_client_id'],
    [{ admin_client_id: 'a b' }, 'admin_client_id'],
    [{ ...admin, admin_username: 'x' }, 'admin_username'],
    [{ ...admin, admin_email: 'nowhere' }, 'admin_email'],
  ]
  for (const [settings, name] of bad) await expect(start(settings)).rejects.toThrow(name)
  expect((await rows()).organizations).toEqual([])
  await expect(start({ ...admin, admin_password: 'weak' })).rejects.toThrow('admin_password')
  // The next start still counts as the first start.
  expect(await start(admin)).toMatchObject({ needs_admin: false })
})

test('a client that is not an admin client is not taken over', async () => {
  const { store, start } = await instance()
  await start()
  await store.write(async tx => {
    await tx.update(tx.tables.clients).set({ type: 'public' })
  })
  await expect(start({ admin_client_secret })).rejects.toThrow('admin_client_id')
})

test('a client of another organization is not taken over', async () => {
  const { store, start, rows } = await instance()
  await start()
  await store.write(async tx => {
    const { clients, organizations } = tx.tables
    const [first] = await tx.select().from(organizations)
    if (!first) throw new Error('no organization')
    await tx.insert(organizations).values({ ...first, id: 'org_other', name: 'other', slug: 'other' })
    await tx.update(clients).set({ organization_id: 'org_other', scopes: [] })
  })
  const before = await rows()
  await expect(start({ admin_client_secret })).rejects.toThrow('admin_client_id')
  expect(await rows()).toEqual(before)
})
