/** Tests that the executable trusts an authority of the operator's own, as the guide says. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { SMTPServer } from 'smtp-server'
import { gatehouse, serveExecutable } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { startPostgres } from '#test/support/postgres.ts'

// Timeout in ms: each test starts processes, and the machine may be busy.
setDefaultTimeout(60_000)
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
const [authority, key, cert] = ['ca.pem', 'server.key', 'server.pem'].map(name => join(folder, name)) as [
  string,
  string,
  string,
]
const trusting = { NODE_EXTRA_CA_CERTS: authority }

beforeAll(async () => {
  const make = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30']
  await Bun.$`${make} -subj /CN=Authority -keyout ${join(folder, 'ca.key')} -out ${authority}`.quiet()
  const issued = ['-CA', authority, '-CAkey', join(folder, 'ca.key')]
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  await Bun.$`${make} ${issued} ${name} -addext basicConstraints=critical,CA:FALSE -keyout ${key} -out ${cert}`.quiet()
})
afterAll(() => rmSync(folder, { recursive: true }))

const pem = (path: string) => readFileSync(path, 'utf8')

test('a mail server and an identity provider with a certificate of the own authority are trusted with NODE_EXTRA_CA_CERTS alone', async () => {
  const office = new SMTPServer({ secure: true, key: pem(key), cert: pem(cert), authOptional: true })
  office.on('error', () => {})
  const { port } = await new Promise<{ port: number }>(done => {
    const listener = office.listen(0, '127.0.0.1', () => done(listener.address() as { port: number }))
  })
  using provider = Bun.serve({
    port: 0,
    tls: { key: pem(key), cert: pem(cert) },
    fetch: ({ url }) => Response.json({ issuer: new URL(url).origin }),
  })
  const { host, origin } = provider.url
  const mail = { GATEHOUSE_SMTP_URL: `smtps://localhost:${port}`, GATEHOUSE_MAIL_FROM: 'id@example.com' }
  const checked = async (env: Record<string, string>) => {
    await using server = await serveExecutable({ GATEHOUSE_OUTBOUND_ALLOW: host, ...env })
    const given = { ...{ type: 'oidc', alias: 'own', name: 'Own', issuer: origin }, client_id: 'x' }
    await server.admin('POST', '/identity-providers', { ...given, client_secret: 'y' })
    const { body } = await server.admin('GET', '/identity-providers/own/connection')
    const doctor = await gatehouse(['doctor'], { GATEHOUSE_DATA_DIR: server.data_dir, ...mail, ...env })
    return [body.checks[0].status, /^(\w+) +mail /m.exec(doctor.stdout)?.[1]]
  }
  expect(await checked({})).toEqual(['bad', 'fail'])
  expect(await checked(trusting)).toEqual(['good', 'ok'])
  await new Promise<void>(done => office.close(done))
})

testOnPostgres('and so is PostgreSQL, with sslmode=verify-full', async () => {
  const server = startPostgres()
  try {
    const { uid, gid } = statSync(server.data)
    for (const [from, name] of [[key, 'own.key'] as const, [cert, 'own.pem'] as const]) {
      copyFileSync(from, join(server.data, name))
      chownSync(join(server.data, name), uid, gid)
    }
    await using sql = new SQL(`${server.url}/postgres`)
    await sql.unsafe("ALTER SYSTEM SET ssl_key_file = 'own.key'")
    await sql.unsafe("ALTER SYSTEM SET ssl_cert_file = 'own.pem'")
    await sql.unsafe('ALTER SYSTEM SET ssl = on')
    server.stop()
    server.start()
    const url = `postgres://gatehouse@localhost:${server.port}/postgres?sslmode=verify-full`
    const list = (env: Record<string, string>) =>
      gatehouse(['user', 'list'], { GATEHOUSE_DATA_DIR: folder, GATEHOUSE_DATABASE_URL: url, ...env })
    expect((await list({})).stderr).toContain('unable to verify the first certificate')
    expect((await list(trusting)).stderr).toContain('database postgres has no instance')
  } finally {
    server.remove()
  }
})
