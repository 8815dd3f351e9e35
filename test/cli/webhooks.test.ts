import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { addRole, EXECUTABLE, gatehouse, SECRET, serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'
import { startReceiver, verifyMessage } from '#test/webhooks/receiver.ts'

// Timeout in ms: each test starts processes, and the machine may be busy.
setDefaultTimeout(30_000)

/**
 * Starts `webhooks listen`. `said` returns the standard output so far, and `failed` the standard error so
 * far.
 */
const listen = async (args: string[], env: Record<string, string>, cwd?: string) => {
  const child = Bun.spawn([EXECUTABLE, 'webhooks', 'listen', ...args], {
    ...(cwd !== undefined && { cwd }),
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const text = { stdout: '', stderr: '' }
  const reading = Promise.all(
    (['stdout', 'stderr'] as const).map(async name => {
      const decoder = new TextDecoder()
      for await (const chunk of child[name]) text[name] += decoder.decode(chunk)
    }),
  )
  await until(() => text.stdout.includes('Secret: '))
  return {
    said: () => text.stdout,
    failed: () => text.stderr,
    stop: async () => {
      child.kill()
      await child.exited
      await reading
    },
  }
}

test.each(['local', 'remote'] as const)(
  'RUN-35 webhooks listen forwards new events of a %s server, signed as a webhook does',
  async place => {
    await using server = await serveExecutable()
    await addRole(server, 'before')
    const receiver = startReceiver()
    const env = {
      local: { GATEHOUSE_DATA_DIR: server.data_dir },
      remote: { SERVICE_CLIENT_SECRET: SECRET, GATEHOUSE_URL: server.url },
    }
    const from = { local: [], remote: ['--url', server.url, '--client', 'gatehouse-admin'] }
    const listener = await listen(
      ['--forward', receiver.url, '--events', 'role.*', ...from[place]],
      env[place],
      server.data_dir,
    )
    const secret = /whsec_\S+/.exec(listener.said())?.[0] ?? ''
    await addRole(server, 'one')
    await addRole(server, 'two')
    await until(() => receiver.received.length >= 2)
    await until(() => listener.said().split('\n').length > 4)
    await listener.stop()
    expect(receiver.received.map(({ body }) => body.type)).toEqual(['role.created', 'role.created'])
    for (const message of receiver.received) verifyMessage(secret, message)
    const { body } = await server.admin('GET', '/events?type=role.created&order=asc')
    expect(receiver.received.map(({ id }) => id)).toEqual(
      body.data.slice(1).map(({ id }: { id: string }) => id),
    )
    expect(listener.said()).toContain(`role.created ${receiver.received[0]?.id}: 204`)
    receiver.stop()
  },
)

test('RUN-35 webhooks listen forwards the events that take the place of removed ones', async () => {
  await using server = await serveExecutable()
  for (const name of ['a', 'b', 'c']) await addRole(server, name)
  const receiver = startReceiver()
  const listener = await listen(['--forward', receiver.url, '--events', 'role.created'], {
    GATEHOUSE_DATA_DIR: server.data_dir,
  })
  await addRole(server, 'd')
  await until(() => receiver.received.length === 1)
  const db = new Database(join(server.data_dir, 'gatehouse.db'))
  db.run('PRAGMA busy_timeout = 10000')
  db.run('DELETE FROM events WHERE seq > (SELECT max(seq) - 4 FROM events)')
  db.close()
  await addRole(server, 'e')
  await until(() => receiver.received.length === 2)
  await listener.stop()
  const { body } = await server.admin('GET', '/events?type=role.created&order=desc&limit=1')
  expect(receiver.received.map(({ id }) => id)).toEqual([expect.any(String), body.data[0].id])
  expect(listener.failed()).toBe('')
  receiver.stop()
})

test('RUN-35 webhooks listen loses no event when another server fails between two pages', async () => {
  const event = (id: string) => ({ id, type: 'role.created', timestamp: new Date().toISOString() })
  const events = [event('old')]
  let failures = 0
  const issuer = Bun.serve({
    port: 0,
    fetch: request => {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/oauth/token')
        return Response.json({ access_token: 'x', token_type: 'Bearer', expires_in: 3600 })
      const page = Number(searchParams.get('cursor') ?? 0)
      if (searchParams.get('limit') === '1') return Response.json({ data: [events[0]], pagination: {} })
      if (page === 2 && failures++ === 0)
        return new Response('<h1>Bad Gateway</h1>', { status: 502, headers: { 'content-type': 'text/html' } })
      const next_cursor = page + 1 < events.length ? String(page + 1) : undefined
      return Response.json({ data: events.slice(page, page + 1), pagination: { next_cursor } })
    },
  })
  const url = issuer.url.href.replace(/\/$/, '')
  const receiver = startReceiver()
  const listener = await listen(['--forward', receiver.url, '--url', `${url}/`, '--client', 'x'], {
    SERVICE_CLIENT_SECRET: SECRET,
  })
  events.push(event('one'), event('two'))
  await until(() => receiver.received.length === 2)
  await listener.stop()
  expect(receiver.received.map(({ id }) => id)).toEqual(['one', 'two'])
  expect(listener.failed()).toBe(`gatehouse: ${url} answered 502: no list of events\n`)
  receiver.stop()
  await issuer.stop(true)
})

test('RUN-35 webhooks listen ends when the reader of its output, such as head, has ended', async () => {
  await using server = await serveExecutable()
  const receiver = startReceiver()
  const child = Bun.spawn([EXECUTABLE, 'webhooks', 'listen', '--forward', receiver.url], {
    env: { PATH: process.env.PATH ?? '', GATEHOUSE_DATA_DIR: server.data_dir },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = child.stdout.getReader()
  await reader.read()
  await reader.cancel()
  await addRole(server, 'one')
  expect(await child.exited).toBe(0)
  expect(receiver.received).toHaveLength(1)
  receiver.stop()
})

test.each([
  [['--forward', 'file:///x'], '--forward: must be an http or https URL'],
  [['--forward', 'http://localhost:1/', '--secret', 'x'], '--secret: must be whsec_'],
  [['--forward', 'http://localhost:1/', '--url', 'https://id.example'], '--url: needs --client'],
  [
    ['--forward', 'http://localhost:1/', '--url', 'id.example', '--client', 'x'],
    '--url: must be an http or https URL',
  ],
])('RUN-35 webhooks listen refuses %j', async (args, reason) => {
  const { code, stderr } = await gatehouse(['webhooks', 'listen', ...args])
  expect([code, stderr]).toEqual([2, expect.stringContaining(reason)])
})

test('RUN-36 doctor names webhooks that fail', async () => {
  await using server = await serveExecutable()
  const doctor = async () =>
    (await gatehouse(['doctor'], { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url })).stdout
  expect(await doctor()).toMatch(/^ok {4}webhooks {2}no webhook fails$/m)
  const hook = { name: 'Till', url: 'https://192.0.2.1/', events: ['role.created'] }
  const { body } = await server.admin('POST', '/webhooks', hook)
  await addRole(server, 'sold')
  await until(async () => (await server.admin('GET', `/webhooks/${body.id}`)).body.failing_since !== null)
  expect(await doctor()).toMatch(/^warn {2}webhooks {2}events do not arrive at Till: /m)
})
