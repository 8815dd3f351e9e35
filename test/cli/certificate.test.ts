/** Tests the executable with TLS clients while its certificate is replaced. */
import { afterAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { selfSigned } from '#src/dev/self-signed.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Json } from '#test/support/app.ts'
import { gatehouse, type Running, SECRET, serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'

setDefaultTimeout(30_000)
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const GATEHOUSE_TLS_CERT = join(folder, 'cert.pem')
const GATEHOUSE_TLS_KEY = join(folder, 'key.pem')

const make = async (name: string) => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ format: 'pem', type: 'pkcs8' })
    .toString()
  const path = join(folder, `${name}.key`)
  writeFileSync(path, key)
  const cert = await Bun.$`openssl req -x509 -key ${path} -subj ${`/CN=${name}`} -days 30`.quiet().text()
  return { cert, key }
}
const put = ({ cert, key }: { cert: string; key: string }) => {
  writeFileSync(GATEHOUSE_TLS_CERT, cert)
  writeFileSync(GATEHOUSE_TLS_KEY, key)
}
const dial = (port: number): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => resolve(socket))
    socket.on('error', reject)
  })
/** Returns the common name of the certificate that a new connection receives. */
const shown = async ({ port }: Running): Promise<string> => {
  const socket = await dial(port)
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}
const logged = (server: Running): Json[] =>
  server
    .output()
    .split('\n')
    .filter(line => line.includes('"event":"certificate"'))
    .map(line => JSON.parse(line))

const serve = () =>
  serveExecutable({
    GATEHOUSE_URL: 'https://localhost',
    GATEHOUSE_HOST: '127.0.0.1',
    GATEHOUSE_TLS_CERT,
    GATEHOUSE_TLS_KEY,
  })

test('SIGHUP loads a new certificate; open requests are answered; a broken certificate is refused once', async () => {
  put(await make('first'))
  await using server = await serve()
  expect(await shown(server)).toBe('first')

  const body = `grant_type=client_credentials&client_id=gatehouse-admin&client_secret=${SECRET}`
  const open = await dial(server.port)
  const answer = new Promise<string>(resolve => open.once('data', data => resolve(String(data))))
  open.write(
    `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
  )
  // This handshake shows that the server has also read the beginning of the open request.
  expect(await shown(server)).toBe('first')
  put(await make('second'))
  server.signal('SIGHUP')
  await until(() => logged(server).length === 1)
  expect(logged(server)).toMatchObject([{ level: 30, expires_at: expect.stringMatching(/^\d{4}-/) }])
  for (let i = 0; i < 10; i++) expect(await shown(server)).toBe('second')
  open.write(body.slice(9))
  expect(await answer).toStartWith('HTTP/1.1 200')
  open.destroy()

  const third = await make('third')
  for (const [broken, reason] of [
    [{ ...third, cert: 'nothing' }, `tls_cert: ${GATEHOUSE_TLS_CERT} contains no certificate in PEM.`],
    [
      { ...third, key: third.key.slice(0, 60) },
      `tls_key: ${GATEHOUSE_TLS_KEY} contains no unencrypted private key`,
    ],
    [{ ...third, key: (await make('other')).key }, 'is not the key of the certificate'],
  ] as const) {
    const before = logged(server).length
    put(broken)
    server.signal('SIGHUP')
    await until(() => logged(server).length > before)
    server.signal('SIGHUP')
    expect(await shown(server)).toBe('second')
    expect(logged(server).slice(before)).toMatchObject([
      { level: 50, reason: expect.stringContaining(reason) },
    ])
  }
})

test('an expired certificate is used at a start with a warning, and does not take the place of another', async () => {
  const now = spyOn(Date, 'now').mockReturnValue(Date.now() - 31 * DAY)
  const expired = await selfSigned('localhost').finally(() => now.mockRestore())
  put(expired)
  await using server = await serve()
  expect(await shown(server)).toBe('Gatehouse development')
  expect(logged(server)).toMatchObject([
    { level: 40, msg: expect.stringMatching(/^the certificate expired at \d{4}-/) },
  ])
  put(await make('valid'))
  server.signal('SIGHUP')
  await until(() => logged(server).length === 2)
  put(expired)
  server.signal('SIGHUP')
  await until(() => logged(server).length === 3)
  expect(logged(server)[2]).toMatchObject({
    level: 50,
    reason: `tls_cert: ${GATEHOUSE_TLS_CERT} has expired.`,
  })
  expect(await shown(server)).toBe('valid')
})

test('changed files are loaded without a signal', async () => {
  put(await make('first'))
  await using server = await serve()
  expect(await shown(server)).toBe('first')
  put(await make('second'))
  // A handshake that runs while the certificate changes can fail, so the test tries again.
  await until(async () => (await shown(server).catch(() => '')) === 'second')
  await until(() => logged(server).length > 0)
  expect(logged(server)).toMatchObject([{ level: 30 }])
})

test('SIGHUP without a certificate changes nothing', async () => {
  await using server = await serveExecutable()
  server.signal('SIGHUP')
  expect((await server.admin('GET', '/users')).status).toBe(200)
})

test('with a certificate and no url, the issuer and the set-up link begin with https', async () => {
  put(await make('localhost'))
  await using server = await serveExecutable({ GATEHOUSE_TLS_CERT, GATEHOUSE_TLS_KEY })
  expect(server.url).toBe(`https://localhost:${server.port}`)
  await until(() => server.output().includes('"event":"set_up"'))
  const line = server
    .output()
    .split('\n')
    .find(text => text.includes('"event":"set_up"'))
  const link: string = JSON.parse(line ?? '').url
  expect(link).toStartWith(`${server.url}/account/set-up?token=`)
  expect((await fetch(link, { tls: { rejectUnauthorized: false } })).status).toBe(200)
})

test('a start with a certificate names a port in use, and a key that does not fit', async () => {
  put(await make('first'))
  await using server = await serve()
  const second = {
    GATEHOUSE_DATA_DIR: join(folder, 'second'),
    GATEHOUSE_HOST: '127.0.0.1',
    GATEHOUSE_TLS_CERT,
    GATEHOUSE_TLS_KEY,
  }
  expect(await gatehouse(['serve'], { ...second, GATEHOUSE_PORT: String(server.port) })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`:${server.port} is in use by another program.`),
  })
  put({ ...(await make('first')), key: (await make('other')).key })
  expect(await gatehouse(['serve'], { ...second, GATEHOUSE_PORT: '0' })).toMatchObject({
    code: 2,
    stderr: `gatehouse: tls_key: ${GATEHOUSE_TLS_KEY} is not the key of the certificate in ${GATEHOUSE_TLS_CERT}.\n`,
  })
})
