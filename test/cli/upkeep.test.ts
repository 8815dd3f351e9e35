import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Glob } from 'bun'
import { start } from '#src/testing/start.ts'
import { addRole, gatehouse, type Running, serveExecutable, stop } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let made = 0
const path = (name: string): string => join(folder, `${++made}-${name}`)

const run = (data_dir: string, ...args: string[]) => gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })
const published = async (server: Running): Promise<string[]> => {
  const { keys } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as {
    keys: { kid: string }[]
  }
  return keys.map(({ kid }) => kid)
}
/** Returns the data directory of a stopped instance. */
const stopped = async (): Promise<string> => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  await stop(await serveExecutable({}, data_dir))
  return data_dir
}

describe('check', () => {
  test('R-06 a database with a flipped byte', async () => {
    const data_dir = await stopped()
    const database = join(data_dir, 'gatehouse.db')
    expect(await run(data_dir, 'check')).toMatchObject({ code: 0, stderr: '' })
    const key = new Database(database)
    // VACUUM removes copies of rows from unused pages, because a flipped byte in such a copy changes nothing.
    key.run('VACUUM')
    const [[sealed]] = key.query('SELECT private_key FROM signing_keys LIMIT 1').values() as [[Uint8Array]]
    key.run('PRAGMA wal_checkpoint(TRUNCATE)')
    key.close()
    const whole = readFileSync(database)
    const flip = (offset: number) => {
      writeFileSync(database, whole)
      const file = openSync(database, 'r+')
      writeSync(file, Buffer.from([(whole[offset] ?? 0) ^ 0x40]), 0, 1, offset)
      closeSync(file)
    }
    const inKey = whole.indexOf(Buffer.from(sealed).subarray(20, 40))
    for (const offset of [3, 4096 * 3, 4096 * 5 + 3, inKey]) {
      flip(offset)
      const { code, stdout, stderr } = await run(data_dir, 'check')
      expect({ offset, code: code !== 0 }).toEqual({ offset, code: true })
      expect(`${stdout}${stderr}`).toMatch(/damaged|cannot be used/)
    }
  }, 30_000)
})

describe('keys', () => {
  test('R-12 rotate, revoke, import and export work beside a running server', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    await using server = await serveExecutable({}, data_dir)
    const first = await published(server)
    const list = await run(data_dir, 'keys', 'list')
    expect(list.stdout.match(/signing/g)).toHaveLength(2)
    expect((await run(data_dir, 'keys', 'rotate')).stdout.match(/ next /g)).toHaveLength(2)
    await until(async () => (await published(server)).length === 4)

    const [revoked = ''] = first
    expect((await run(data_dir, 'keys', 'revoke', revoked)).stdout).not.toContain(revoked)
    await until(async () => !(await published(server)).includes(revoked))
    expect((await server.admin('GET', '/roles')).status).toBeOneOf([200, 401])
    for (const command of ['revoke', 'export'])
      expect(await run(data_dir, 'keys', command, revoked)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: 'gatehouse: no such key: `gatehouse keys list` prints all keys\n',
      })

    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
    const file = path('key.pem')
    writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }))
    const imported = (await run(data_dir, 'keys', 'import', file)).stdout.trim()
    await until(async () => (await published(server)).includes(imported))
    expect((await run(data_dir, 'keys', 'export', imported)).stdout).toBe(readFileSync(file, 'utf8'))
    expect(await run(data_dir, 'keys', 'import', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('already stored'),
    })
    writeFileSync(file, 'no key')
    expect(await run(data_dir, 'keys', 'import', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('expected a private key in PEM'),
    })
  }, 30_000)

  test('R-12 list names a key that verifies only hints, so that it can be revoked', async () => {
    const data_dir = await stopped()
    await run(data_dir, 'keys', 'rotate')
    const database = new Database(join(data_dir, 'gatehouse.db'))
    const formerly = Date.now() - 1000
    const [[kid]] = database
      .query(
        `UPDATE signing_keys SET active_at = 1, retired_at = 2, expires_at = ${formerly}
         WHERE id = (SELECT max(id) FROM signing_keys) RETURNING id`,
      )
      .values() as [[string]]
    const end = new Date(formerly).toISOString()
    expect((await run(data_dir, 'keys', 'list')).stdout).toMatch(
      new RegExp(`^${kid} .* retired .* published until ${end}$`, 'm'),
    )
    expect((await run(data_dir, 'keys', 'revoke', kid)).stdout).not.toContain(kid)
    expect(database.query('SELECT id FROM signing_keys WHERE id = ?').values(kid)).toEqual([])
    const [[event]] = database.query('SELECT metadata FROM events ORDER BY id DESC LIMIT 1').values() as [
      [string],
    ]
    expect(JSON.parse(event)).toEqual({ action: 'revoked', key_id: kid })
    database.close()
  })

  test('the master key changes beside a running server, which continues; the next start needs the new key', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const file = join(data_dir, 'master.key')
    const server = await serveExecutable({}, data_dir)
    const before = await published(server)
    const old = readFileSync(file, 'utf8')
    const oldKeys = () =>
      [...new Glob('master.key.until-*').scanSync(data_dir)].map(name => {
        expect(statSync(join(data_dir, name)).mode & 0o777).toBe(0o600)
        return readFileSync(join(data_dir, name), 'utf8')
      })
    const { code, stdout } = await run(data_dir, 'keys', 'rekey')
    expect(code).toBe(0)
    expect(stdout).toContain(`Earlier backups need the old one: ${file}.until-`)
    expect(readFileSync(file, 'utf8')).not.toBe(old)
    expect(oldKeys()).toEqual([old])
    expect((await addRole(server, 'written-after')).status).toBe(201)
    await stop(server)
    const again = await serveExecutable({}, data_dir)
    expect(await published(again)).toEqual(before)
    await stop(again)

    // The files are as after an interrupted change of the key: `master.key.next` has not replaced
    // `master.key` yet.
    const present = readFileSync(file, 'utf8')
    writeFileSync(join(data_dir, 'master.key.next'), present)
    writeFileSync(file, old)
    expect((await run(data_dir, 'check')).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(present)
    expect(oldKeys()).toEqual([old, old])

    writeFileSync(file, old)
    expect(await run(data_dir, 'check')).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('The master key does not belong'),
    })
  }, 30_000)

  test('a backup from before a change of the master key is restored with the old key', async () => {
    const [data_dir, backup, empty] = [mkdtempSync(join(folder, 'data-')), path('backup.db'), path('data')]
    await stop(await serveExecutable({}, data_dir))
    expect((await run(data_dir, 'backup', backup)).code).toBe(0)
    expect((await run(data_dir, 'keys', 'rekey')).code).toBe(0)
    mkdirSync(empty)
    copyFileSync(join(data_dir, 'master.key'), join(empty, 'master.key'))
    expect(await run(empty, 'restore', backup)).toMatchObject({ code: 78 })
    const [old = ''] = new Glob('master.key.until-*').scanSync(data_dir)
    copyFileSync(join(data_dir, old), join(empty, 'master.key'))
    expect(await run(empty, 'restore', backup)).toMatchObject({ code: 0 })
    expect((await run(empty, 'keys', 'list')).code).toBe(0)
  }, 30_000)

  test('a master key from the settings is changed by hand', async () => {
    const data_dir = path('data')
    const [old, next] = [path('old.key'), path('next.key')]
    writeFileSync(old, Buffer.alloc(32, 1).toString('base64'))
    await stop(
      await serveExecutable({ GATEHOUSE_MASTER_KEY_FILE: old, GATEHOUSE_DATA_DIR: data_dir }, folder),
    )
    const keys = (key: string, ...args: string[]) =>
      gatehouse(['keys', ...args], { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_MASTER_KEY_FILE: key })
    expect((await keys(old, 'rekey')).code).toBe(2)
    expect((await keys(old, 'rekey', '--new-key-file', next)).code).toBe(0)
    expect((await keys(next, 'list')).code).toBe(0)
    expect((await keys(old, 'list')).code).toBe(78)
  })
})

test('events export prints the whole log, one event a line, oldest first', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  await using server = await serveExecutable({}, data_dir)
  for (const name of ['one', 'two', 'three']) await addRole(server, name)
  const { code, stdout } = await run(data_dir, 'events', 'export')
  const events = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(code).toBe(0)
  const { body } = await server.admin('GET', '/events?order=asc&limit=100')
  expect(events).toEqual(body.data)
  expect(events.filter(({ type }) => type === 'role.created')).toHaveLength(3)
  expect((await run(data_dir, 'events', 'export', '--since', '2999-01-01')).stdout).toBe('')
  const { timestamp, id } = events.at(-1)
  expect((await run(data_dir, 'events', 'export', '--since', timestamp)).stdout).toContain(id)
  for (const text of ['yesterday', '2026-01-31T08:00', '2026-1-31'])
    expect((await run(data_dir, 'events', 'export', '--since', text)).code).toBe(2)
})

describe('doctor and config check', () => {
  test('a healthy instance has no findings', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    await using server = await serveExecutable({}, data_dir)
    const { code, stdout } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_URL: server.url,
    })
    expect({ code, failed: stdout.match(/^fail.*/gm) }).toEqual({ code: 0, failed: null })
    expect(stdout).toContain(`${server.url} answers`)
    // The limit of this command says nothing about the limit of the server.
    expect(stdout).toMatch(
      /^skip {2}sockets {3}the limit of open files: the console shows that of the server$/m,
    )
    expect(stdout).toMatch(
      /^ok {4}loop {6}the longest hold of the event loop in the last minute was 0\.\d{3} s$/m,
    )
  })

  test.each([
    [[' 0.5'], 'ok', '0.500 s'],
    [[' 1.25'], 'warn', '1.250 s, and all requests waited'],
    [['{worker="1"} 0.7', '{worker="2"} 0.1'], 'warn', '0.700 s, and all requests waited'],
  ])('an event loop that was blocked for%j s: %s', async (holds, state, said) => {
    const asked: (string | null)[] = []
    using metrics = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: request => {
        if (new URL(request.url).pathname !== '/metrics') return new Response(null, { status: 404 })
        asked.push(request.headers.get('authorization'))
        return new Response(holds.map(hold => `gatehouse_event_loop_hold_seconds${hold}\n`).join(''))
      },
    })
    // As behind a proxy, the public address has no metrics.
    using proxy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(null, { status: 404 }),
    })
    const { stdout } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: path('nowhere'),
      GATEHOUSE_URL: proxy.url.origin,
      GATEHOUSE_PORT: String(metrics.port),
      GATEHOUSE_METRICS_TOKEN: 'scrape-me',
    })
    expect(stdout).toMatch(
      new RegExp(`^${state} +loop +the longest hold of the event loop in the last minute was ${said}$`, 'm'),
    )
    const skipped = stdout.match(/^skip .*: create an instance with `gatehouse serve` for this check$/gm)
    expect(skipped).toHaveLength(4)
    expect(asked).toEqual(['Bearer scrape-me'])
  })

  test('closed metrics are the reason why the event loop is not checked: no token, or another one', async () => {
    await using server = await serveExecutable({ GATEHOUSE_METRICS_TOKEN: 'scrape-me' })
    const loopWith = async (given: Record<string, string>) => {
      const { stdout } = await gatehouse(['doctor'], { GATEHOUSE_DATA_DIR: server.data_dir, ...given })
      return /^(\w+) +loop +(.*)$/m.exec(stdout)?.slice(1)
    }
    const skipped = (what: string) => [
      'skip',
      expect.stringMatching(
        new RegExp(`^the event loop: ${what} for this check, because http:\\S+/metrics is closed$`),
      ),
    ]
    expect(await loopWith({})).toEqual(skipped('set metrics_token'))
    expect(await loopWith({ GATEHOUSE_METRICS_TOKEN: 'other' })).toEqual(
      skipped("give this command the server's metrics_token"),
    )
    expect(await loopWith({ GATEHOUSE_METRICS_TOKEN: 'scrape-me' })).toEqual(['ok', expect.any(String)])
  })

  test('a server that accepts connections and never answers fails the check of the address', async () => {
    const { promise: never } = Promise.withResolvers<Response>()
    using hanging = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => never })
    const { code, stdout } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: path('nowhere'),
      GATEHOUSE_URL: hanging.url.origin,
      GATEHOUSE_PORT: '1',
    })
    expect(code).toBe(1)
    expect(stdout).toContain(
      `fail  address   ${hanging.url.origin} cannot be reached (no answer in time): is the server running?\n`,
    )
    expect(stdout).toMatch(/^skip {2}loop .*start the server for this check$/m)
  })

  test('each problem is named', async () => {
    const { code, stdout, stderr } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: await stopped(),
      GATEHOUSE_URL: 'http://127.0.0.1:1',
      GATEHOUSE_GEOIP_FILE: '/no/such/file',
    })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^fail {2}files .*geoip_file/m)
    expect(stdout).toMatch(/^fail {2}address /m)
    expect(stdout).toMatch(/^skip {2}loop .*start the server for this check$/m)
    expect(stderr).toContain('2 checks failed')
  })

  test('RUN-38 without the settings of the server, the findings about TLS, proxy and mail are left out', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const proxy = { GATEHOUSE_URL: 'https://id.example.com', GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1' }
    const mail = { GATEHOUSE_SMTP_URL: 'smtp://127.0.0.1:1', GATEHOUSE_MAIL_FROM: 'id@example.com' }
    const env = { GATEHOUSE_HOST: '127.0.0.1', ...proxy, ...mail }
    await stop(await serveExecutable(env, data_dir))
    const found = async (given: Record<string, string>) => {
      const { stdout } = await gatehouse(['doctor'], { GATEHOUSE_DATA_DIR: data_dir, ...given })
      return ['scheme', 'mail'].map(name => new RegExp(`^(\\w+) +${name} +(.*)$`, 'm').exec(stdout)?.slice(1))
    }
    const [scheme, refused] = await found(env)
    expect([scheme, refused?.[0]]).toEqual([['ok', 'a trusted proxy terminates TLS'], 'fail'])
    expect(await found({})).toEqual([
      ['skip', "give this command the server's trusted_proxies for this check"],
      ['skip', "give this command the server's smtp_url and mail_from for this check"],
    ])
    expect(await found({ ...proxy, GATEHOUSE_SMTP_URL: mail.GATEHOUSE_SMTP_URL })).toEqual([
      ['warn', expect.stringContaining('set host to 127.0.0.1')],
      ['skip', "give this command the server's mail_from for this check"],
    ])
  })

  test('a certificate that this machine does not trust is named, and not a server that does not run', async () => {
    const data_dir = path('trusted-nowhere')
    const started = await start({ tls: true, data_dir })
    try {
      const { stdout } = await gatehouse(['doctor'], {
        GATEHOUSE_DATA_DIR: data_dir,
        GATEHOUSE_URL: started.url,
      })
      expect(stdout).toMatch(/^fail {2}address .*the certificate of https:\S+ is not trusted here \(\w+\)/m)
      expect(stdout).toMatch(/^skip {2}loop .*correct the certificate for this check$/m)
    } finally {
      await started.stop()
    }
  })

  test('a missing seed file is named, because the next start would stop at it', async () => {
    const { stdout } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: path('nowhere'),
      GATEHOUSE_SEED_FILE: '/no/seed.yaml',
    })
    expect(stdout).toMatch(/^fail {2}files +\/no\/seed\.yaml: cannot be read \(ENOENT\)\.$/m)
  })

  test('a missing theme that an organization uses is named, and so is a file that cannot be a theme', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    await using server = await serveExecutable({}, data_dir)
    for (const theme of ['acme', 'nowhere'])
      await server.admin('POST', '/organizations', { name: theme, slug: theme, settings: { theme } })
    mkdirSync(join(data_dir, 'themes/folder.css'), { recursive: true })
    writeFileSync(join(data_dir, 'themes/acme.css'), ':root { --radius: 0 }')
    const { code, stdout } = await gatehouse(['doctor'], {
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_URL: server.url,
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^warn {2}themes .*themes\/folder\.css: not a regular file; there is no theme named "nowhere"$/m,
    )
    expect(await run(data_dir, 'config', 'check')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('warning: themes/folder.css: not a regular file'),
    })
  })

  test('settings are checked without changing anything', async () => {
    const data_dir = path('untouched')
    expect((await run(data_dir, 'config', 'check')).code).toBe(0)
    expect(existsSync(data_dir)).toBe(false)
    const wrong = await gatehouse(['config', 'check'], {
      GATEHOUSE_TLS_CERT: '/no.pem',
      GATEHOUSE_TLS_KEY: '/no.key',
    })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('/no.pem cannot be read') })
    const seeded = await gatehouse(['config', 'check'], { GATEHOUSE_SEED_FILE: '-' })
    expect(seeded).toMatchObject({ code: 0, stdout: 'The settings are valid.\n' })
  })
})
