import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '#test/support/app.ts'
import { startDev } from '#test/support/development.ts'
import { EXECUTABLE, gatehouse } from '#test/support/executable.ts'
import { claimsOf, headerOf } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'
import { createVerifier } from './sdk.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = async (name: string, content: unknown): Promise<string> => {
  const path = join(folder, name)
  await Bun.write(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('dev 2: gatehouse token', () => {
  test('from a running server: user, scope, role, claims, lifetime, and the three outputs', async () => {
    await using server = await startDev(['--data-dir', join(folder, 'running')])
    const run = async (...args: string[]) =>
      (await gatehouse(['token', '--data-dir', server.ready.data_dir, ...args])).stdout.trim()
    const claims = claimsOf(
      await run(
        '--user',
        'alice',
        '--scope',
        'a b',
        '--role',
        'admin',
        '--claim',
        'tier=gold',
        'n=3',
        '--expires-in',
        '1h',
      ),
    )
    expect(claims).toMatchObject({
      scope: 'a b',
      roles: ['admin'],
      tier: 'gold',
      n: 3,
      iss: server.ready.url,
    })
    expect(claims.exp - claims.iat).toBe(3600)
    expect(await run('-o', 'header')).toMatch(/^Authorization: Bearer ey/)
    expect(JSON.parse(await run('-o', 'json'))).toMatchObject({ token_type: 'Bearer', expires_in: 3600 })
    const verifier = createVerifier({ issuer: server.ready.url, audience: 'dev-service' })
    await expect(verifier.verify(await run('--bad', 'expired'))).rejects.toMatchObject({
      code: 'token_expired',
    })
  })

  test('from a running server with --tls, and inside `exec --tls`', async () => {
    await using server = await startDev(['--tls'])
    const { data_dir, url } = server.ready
    const { stdout, stderr } = await gatehouse(['token', '--data-dir', data_dir, '--user', 'alice'])
    expect(stderr).toBe('')
    expect(claimsOf(stdout)).toMatchObject({ iss: url, preferred_username: 'alice' })
    const inside = await gatehouse(['exec', '--tls', '--', EXECUTABLE, 'token', '--user', 'alice'])
    expect(claimsOf(inside.stdout)).toMatchObject({ preferred_username: 'alice' })
  })

  test('from a development data directory whose server has stopped', async () => {
    const data_dir = join(folder, 'kept')
    const server = await startDev(['--data-dir', data_dir])
    server.kill('SIGTERM')
    await server.exited
    const token = (...args: string[]) => gatehouse(['token', '--data-dir', data_dir, ...args])
    const { stdout } = await token('--user', 'somebody', '--claim', 'a=b')
    expect(claimsOf(stdout)).toMatchObject({ a: 'b', iss: server.ready.url, aud: 'dev-service' })
    const plain = claimsOf((await token('--user', 'alice')).stdout)
    expect(plain).toMatchObject({ preferred_username: 'alice', roles: ['user'], aud: 'dev-service' })
    expect(await token('--user', ' alice')).toMatchObject({
      code: 2,
      stderr: 'gatehouse: user: No line breaks, control characters, or leading or trailing spaces.\n',
    })
    await using again = await startDev(['--data-dir', data_dir])
    const keys: Json = await (await fetch(`${again.ready.url}/.well-known/jwks.json`)).json()
    const { kid } = headerOf(stdout)
    expect(keys.keys.map((key: Json) => key.kid)).toContain(kid)
  })

  test('from a stopped development server, whatever master key the shell sets', async () => {
    const data_dir = join(folder, 'own-key')
    const server = await startDev(['--data-dir', data_dir])
    server.kill('SIGTERM')
    await server.exited
    const env = { GATEHOUSE_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
    const { code, stdout } = await gatehouse(['token', '--data-dir', data_dir, '--user', 'alice'], env)
    expect([code, claimsOf(stdout).iss]).toEqual([0, server.ready.url])
  })

  test('from a server that has died and whose process id another OS user has', async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
    const server = await startDev(['--data-dir', data_dir])
    server.kill('SIGTERM')
    await server.exited
    const isRoot = process.getuid?.() === 0
    const path = join(data_dir, 'dev.json')
    const pid = isRoot ? process.pid : 1
    await Bun.write(path, JSON.stringify({ ...(await Bun.file(path).json()), pid }))
    if (isRoot) await Bun.$`chown -R 65534:65534 ${data_dir}`
    const command = [EXECUTABLE, 'token', '--data-dir', data_dir, '--user', 'alice']
    const other = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
    const env = { PATH: process.env.PATH ?? '' }
    const { exitCode, stdout } = Bun.spawnSync([...other, ...command], { env })
    rmSync(data_dir, { recursive: true })
    expect([exitCode, claimsOf(stdout.toString()).iss]).toEqual([0, server.ready.url])
  })

  test('RUN-32 in the folder of an instance, for that instance, and says so beside a development server', async () => {
    const cwd = join(folder, 'beside')
    mkdirSync(cwd)
    const seed = await file('beside.yaml', { users: [{ username: 'alice', email: 'alice@example.com' }] })
    expect((await gatehouse(['apply', seed], { GATEHOUSE_DATA_DIR: join(cwd, 'data') })).code).toBe(0)
    await using _ = await startDev()
    const env = { PATH: process.env.PATH ?? '' }
    const command = [EXECUTABLE, 'token', '--user', 'alice', '--client', 'gatehouse-admin']
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, env })
    expect([exitCode, claimsOf(stdout.toString()).iss]).toEqual([0, 'http://localhost:8080'])
    expect(stderr.toString()).toMatch(
      /^gatehouse: this token is for the instance in \.\/data; for the development server at http\S+ add --data-dir \S+\n$/,
    )
  })

  test('a database on PostgreSQL is the instance, except in the directory of a development server', async () => {
    const data_dir = join(folder, 'sqlite')
    const server = await startDev(['--data-dir', data_dir])
    await using _ = await startDev()
    server.kill('SIGTERM')
    await server.exited
    const env = { GATEHOUSE_DATABASE_URL: 'postgres://gatehouse@127.0.0.1:1/gatehouse' }
    const kept = await gatehouse(['token', '--data-dir', data_dir, '--user', 'somebody'], env)
    expect(claimsOf(kept.stdout).iss).toBe(server.ready.url)
    const other = await gatehouse(['token', '--user', 'alice', '--client', 'shop'], env)
    expect([other.code, other.stderr]).toEqual([
      75,
      expect.stringContaining('no server answers at this address'),
    ])
  })

  test('from production: only a real user with their real rights, and recorded', async () => {
    const data_dir = join(folder, 'production')
    const env = { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_URL: 'https://id.example.com' }
    const web = {
      type: 'confidential',
      grant_types: ['authorization_code'],
      redirect_uris: ['https://shop.example/callback'],
      scopes: ['openid', 'orders'],
    }
    const acme = { organization: 'acme' }
    const seed = await file('production.yaml', {
      organizations: [{ slug: 'acme', settings: { session_ttl: '5m' } }],
      groups: [{ ...acme, name: 'staff', members: ['carol'] }],
      users: [
        { ...acme, username: 'carol', email: 'carol@acme.example' },
        { ...acme, username: 'dave', email: 'dave@acme.example' },
        { username: 'alice', email: 'alice@example.com' },
        { username: 'bob', email: 'bob@example.com', enabled: false },
      ],
      clients: [
        { ...web, client_id: 'shop', client_secret: 'shop-secret' },
        { ...web, ...acme, client_id: 'closed', client_secret: 'closed-secret', allowed_groups: ['staff'] },
      ],
    })
    expect((await gatehouse(['apply', seed], env)).code).toBe(0)
    const token = (...args: string[]) => gatehouse(['token', '--client', 'shop', ...args], env)
    const { stdout } = await token('--user', 'alice', '--scope', 'orders')
    expect(claimsOf(stdout)).toMatchObject({
      iss: 'https://id.example.com',
      preferred_username: 'alice',
      roles: ['user'],
      scope: 'orders',
    })
    const refused = async (...args: string[]) => {
      const { code, stderr } = await token(...args)
      expect(code).toBe(2)
      return stderr
    }
    expect(await refused('--user', 'nobody')).toContain('no such user')
    expect(await refused('--user', 'bob')).toContain('disabled')
    expect(await refused()).toContain('--user')
    expect(await refused('--organization', 'acme', '--user', 'carol')).toContain(
      'no such client in the organization acme',
    )
    for (const option of [
      ['--role', 'admin'],
      ['--claim', 'a=b'],
      ['--bad', 'expired'],
    ])
      expect(await refused('--user', 'alice', ...option)).toContain('only in development')
    expect(await refused('--user', 'alice', '--scope', 'orders admin')).toContain('may not request admin')
    expect(await refused('--user', 'alice', '--expires-in', '2h')).toContain('at most 60 minutes')
    const closed = ['--organization', 'acme', '--client', 'closed', '--user']
    expect(await refused(...closed, 'dave')).toContain('does not admit the user')
    expect(await refused(...closed, 'carol', '--expires-in', '6m')).toContain('at most 5 minutes')
    const brief = claimsOf((await token(...closed, 'carol')).stdout)
    expect(brief.exp - brief.iat).toBe(300)
    const { Database } = await import('bun:sqlite')
    using db = new Database(join(data_dir, 'gatehouse.db'), { readonly: true })
    const events = db
      .query("SELECT type, metadata FROM events WHERE type LIKE 'token.%' OR type LIKE 'session.%'")
      .all() as Json[]
    const each = ['session.created', 'token.issued']
    expect(events.map(({ type }) => type)).toEqual([...each, ...each])
    expect(JSON.parse(events[1].metadata)).toEqual({
      client_id: 'shop',
      grant_type: 'command_line',
      scope: 'orders',
    })
    const { code, stderr } = await gatehouse(['dev', '--data-dir', data_dir, '--port', '0'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('not a development server')])
  })
})

describe('dev 3: gatehouse exec', () => {
  test('runs the command with the variables of the resource-server package, and returns its exit code', async () => {
    const script = 'env | grep ^SERVICE_ | sort; exit 7'
    const { code, stdout } = await gatehouse(['exec', '--', 'sh', '-c', script])
    expect(code).toBe(7)
    expect(stdout.replace(/=.*(TOKEN|URL).*/g, '')).toMatch(
      /^SERVICE_CLIENT_ID=dev-service\nSERVICE_CLIENT_SECRET=dev-secret\nSERVICE_DEV_TOKEN=.+\nSERVICE_REALM=org_default\nSERVICE_URL=http:\/\/localhost:\d+\n$/,
    )
  })

  test('the server runs during the command and is stopped after it', async () => {
    const { stdout } = await gatehouse([
      'exec',
      '--',
      'sh',
      '-c',
      'echo $SERVICE_URL; curl -s $SERVICE_URL/readyz',
    ])
    const [url = '', readyz = ''] = stdout.trim().split('\n')
    expect(JSON.parse(readyz)).toEqual({ status: 'ready' })
    await expect(fetch(url)).rejects.toThrow()
  })

  test('another client and seed; a killed or unknown command', async () => {
    const seed = await file('exec.yaml', {
      organizations: [{ id: 'org_0192d3a4-5b6c-7d8e-9f00-112233445566', slug: 'acme' }],
      clients: ['one', 'two'].map(client_id => ({
        client_id,
        organization: 'acme',
        type: 'confidential',
        client_secret: `${client_id}-secret`,
        grant_types: ['client_credentials'],
        scopes: [],
      })),
    })
    const run = (...args: string[]) => gatehouse(['exec', '--seed', seed, ...args])
    const { stdout } = await run(
      '--client',
      'two',
      '--',
      'sh',
      '-c',
      'echo $SERVICE_CLIENT_ID $SERVICE_CLIENT_SECRET $SERVICE_REALM',
    )
    expect(stdout.trim()).toBe('two two-secret org_0192d3a4-5b6c-7d8e-9f00-112233445566')
    expect((await run('--client', 'three', '--', 'true')).stderr).toContain(
      'there is no client three. Clients: one, two',
    )
    expect((await run('--', 'sh', '-c', 'kill -9 $$')).code).toBe(137)
    expect((await run('--', 'no-such-command')).stderr).toContain('no-such-command: there is no such command')
  })

  test('a seed without clients gets dev-service, whose secret works', async () => {
    const seed = await file('users.yaml', { users: [{ username: 'zoe', email: 'zoe@example.com' }] })
    const token =
      'curl -s -u $SERVICE_CLIENT_ID:$SERVICE_CLIENT_SECRET -d grant_type=client_credentials $SERVICE_URL/oauth/token'
    const users = 'curl -s -H "Authorization: Bearer $SERVICE_DEV_TOKEN" $SERVICE_URL/dev/users'
    for (const client of [[], ['--client', 'dev-service']]) {
      const command = ['exec', '--seed', seed, ...client, '--', 'sh', '-c', `${token}; echo; ${users}`]
      const [issued = '', listed = ''] = (await gatehouse(command)).stdout.split('\n')
      expect(claimsOf(JSON.parse(issued).access_token).sub).toBe('dev-service')
      expect(JSON.parse(listed).data.map(({ username }: Json) => username)).toEqual(['zoe'])
    }
  })

  test('a public client has no secret, not even one of the shell', async () => {
    const command = ['exec', '--client', 'dev-web', '--', 'sh', '-c', 'env | grep ^SERVICE_CLIENT']
    const { stdout } = await gatehouse(command, { SERVICE_CLIENT_SECRET: 'production-secret' })
    expect(stdout).toBe('SERVICE_CLIENT_ID=dev-web\n')
  })

  test('the client, its organization and the tokens inside are those of --client', async () => {
    const organizations = {
      first: 'org_0192d3a4-5b6c-7d8e-9f00-112233445566',
      second: 'org_0192d3a4-5b6c-7d8e-9f00-112233445577',
    }
    const seed = await file('two-organizations.yaml', {
      organizations: Object.entries(organizations).map(([slug, id]) => ({ id, slug })),
      clients: Object.keys(organizations).map(organization => ({
        client_id: `of-${organization}`,
        organization,
        type: 'confidential',
        client_secret: `${organization}-secret`,
        grant_types: ['client_credentials'],
        scopes: [],
      })),
    })
    const script = `echo $SERVICE_CLIENT_ID $SERVICE_CLIENT_SECRET $SERVICE_REALM; ${EXECUTABLE} token`
    for (const [slug, id] of Object.entries(organizations)) {
      const command = ['exec', '--seed', seed, '--client', `of-${slug}`, '--', 'sh', '-c', script]
      const [names, token = ''] = (await gatehouse(command)).stdout.split('\n')
      expect(names).toBe(`of-${slug} ${slug}-secret ${id}`)
      expect(claimsOf(token)).toMatchObject({ sub: `of-${slug}`, org_id: id.slice('org_'.length) })
    }
  })

  test('a signal during the start of the command reaches the command', async () => {
    const script = `trap 'exit 3' TERM; kill -TERM $PPID; for n in $(seq 500); do sleep 0.01; done`
    for (let i = 0; i < 5; i++) expect((await gatehouse(['exec', '--', 'sh', '-c', script])).code).toBe(3)
  })

  test.each(['', '</dev/null'])('Ctrl-C at a terminal reaches the command once %s', async input => {
    let shown = ''
    const script = `let n = 0
      process.on('SIGINT', () => console.log('interrupted ' + ++n))
      process.on('SIGHUP', () => console.log('hung up'))
      process.on('SIGTERM', () => { console.log('stopped after ' + n); process.exit() })
      setTimeout(() => {}, 30_000)
      console.log('started')`
    const command = [EXECUTABLE, 'exec', '--', process.execPath, '-e', script]
    const child = Bun.spawn(['sh', '-c', `exec "$@" ${input}`, 'sh', ...command], {
      env: { PATH: process.env.PATH ?? '' },
      terminal: {
        data: (_terminal, bytes) => {
          shown += new TextDecoder().decode(bytes)
        },
      },
    })
    await until(() => shown.includes('started'))
    // Until the command has got the first SIGINT, a second one would count as the same.
    child.kill('SIGSTOP')
    child.terminal?.write('\u0003')
    await until(() => shown.includes('interrupted'))
    child.kill('SIGCONT')
    // A forwarded SIGINT would have arrived when the command has answered the next signal.
    child.kill('SIGHUP')
    await until(() => shown.includes('hung up'))
    child.kill('SIGTERM')
    await child.exited
    expect(shown).toContain('stopped after 1')
  })

  test('warnings of the server are on standard error, and the setting changes their level', async () => {
    const command = ['exec', '--', 'sh', '-c', 'curl -s -H "Host: foo.localhost" $SERVICE_URL/readyz']
    const { stdout, stderr } = await gatehouse(command)
    expect([stdout, JSON.parse(stderr)]).toEqual([
      '{"status":"ready"}',
      expect.objectContaining({ level: 40, event: 'host' }),
    ])
    expect((await gatehouse(command, { GATEHOUSE_LOG_LEVEL: 'error' })).stderr).toBe('')
  })

  test('the options of the command are its own, also without --', async () => {
    const config = await file('settings.yaml', 'log_level: silent\n')
    const run = async (...args: string[]) => (await gatehouse(args)).stdout
    expect(await run('exec', '--client', 'dev-web', 'echo', '--version', '--port', '1', '--help')).toBe(
      '--version --port 1 --help\n',
    )
    expect(await run('exec', '--config', config, 'echo', '--config')).toBe('--config\n')
    expect(await run('--config', config, 'exec', 'echo', '-V')).toBe('-V\n')
    expect(await run('exec', '--help')).toContain('Usage: gatehouse exec')
  })

  test('a file that is not a program is refused as such', async () => {
    const plain = await file('plain.sh', 'no program')
    for (const name of [plain, folder])
      expect(await gatehouse(['exec', '--', name])).toMatchObject({
        code: 2,
        stderr: `gatehouse: ${name}: this is not an executable program.\n`,
      })
    chmodSync(plain, 0o755)
    expect((await gatehouse(['exec', '--', plain])).stderr).toContain('not an executable program')
  })

  test('a refused seed runs nothing', async () => {
    const seed = await file('wrong.yaml', 'users: [{ username: x }]')
    const { code, stdout, stderr } = await gatehouse(['exec', '--seed', seed, '--', 'echo', 'ran'])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`${seed}:1: users[0].username: 3 to 128 letters`)
  })
})
