/** Tests the program of the guide page "Sign out everywhere" with the executable, over sockets. */
import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Express } from 'express'
import { guideSections } from '#src/guide/pages.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'
import { freePort } from '#test/support/free-port.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addClient, addUser, logInTo } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { remote } from '#test/support/remote.ts'
import { claimsOf, redeem } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

interface Program {
  app: Express
  sessions: Map<string, { user: Json }>
}

/**
 * Writes the program of the page, with another issuer, to a file in the repository, and loads the file.
 * Imports find the package only from inside the repository.
 */
const loadProgram = async (issuer: string): Promise<Program> => {
  const { blocks = [] } =
    guideSections.flatMap(({ pages }) => pages).find(({ subject }) => subject === 'logout') ?? {}
  const code = blocks.flatMap(block => (block.type === 'code' && block.language === 'js' ? [block.text] : []))
  expect(code).toHaveLength(1)
  const dist = join(import.meta.dir, '../../dist')
  await mkdir(dist, { recursive: true })
  const folder = await mkdtemp(join(dist, 'guide-'))
  const file = join(folder, 'app.mjs')
  await Bun.write(file, (code[0] ?? '').replace('https://id.example.com', issuer))
  const program = await import(file)
  await rm(folder, { recursive: true })
  return program
}

const listenAt = async ({ app }: Program, port: number) => {
  const server = app.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const kill = async (server: Running) => {
  server.signal('SIGKILL')
  await server.exited
}

/** Signs in at the client, and returns the claims of the ID token. */
const logIn = async (server: Running, client: Json): Promise<Json> => {
  const app = remote(server)
  const { code } = await logInTo(openBrowser(app), 'shop', 'ada')
  return claimsOf((await redeem(app, client, code ?? '')).body.id_token)
}

const revoke = async (server: Running, user: Json): Promise<void> =>
  expect((await server.admin('DELETE', `/sessions/sess_${user.sid}`)).status).toBe(204)

const logOutEverywhere = async (more: Record<string, string> = {}) => {
  const [port, target] = [freePort(), freePort()]
  const env = {
    GATEHOUSE_PORT: String(port),
    GATEHOUSE_OUTBOUND_ALLOW: `127.0.0.1:${target}`,
    ...more,
  }
  const data_dir = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  const program = await loadProgram(`http://localhost:${port}`)
  const { sessions } = program
  {
    await using server = await serveExecutable(env, data_dir)
    await addUser(remote(server), 'ada')
    const client = await addClient(remote(server), 'shop', {
      backchannel_logout_uri: `http://127.0.0.1:${target}/backchannel-logout`,
    })
    for (const cookie of ['one', 'two', 'three']) sessions.set(cookie, { user: await logIn(server, client) })
    {
      await using _ = await listenAt(program, target)
      await revoke(server, sessions.get('one')?.user)
      await until(() => !sessions.has('one'))
      expect([...sessions.keys()]).toEqual(['two', 'three'])
    }
    const logouts = async () => (await server.admin('GET', '/clients/shop/logouts?order=asc')).body.data
    await revoke(server, sessions.get('two')?.user)
    await until(async () => (await logouts())[1]?.failure)
    await kill(server)
  }
  await using server = await serveExecutable(env, data_dir)
  await using _ = await listenAt(program, target)
  await until(() => !sessions.has('two'))
  expect([...sessions.keys()]).toEqual(['three'])
  await until(async () => (await server.admin('GET', '/clients/shop/logouts')).body.data.every(isDelivered))
  await kill(server)
  await rm(data_dir, { recursive: true })
}

const isDelivered = ({ status }: Json) => status === 'delivered'

test(
  'BCL-18 an application ends its session at once, and also after it and the server were down',
  () => logOutEverywhere(),
  60_000,
)

testOnPostgres(
  'BCL-18 an application ends its session at once, and also after it and the server were down, on PostgreSQL',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    await logOutEverywhere({ GATEHOUSE_DATABASE_URL: url })
    await drop()
  },
  60_000,
)
