import { expect, setDefaultTimeout, test } from 'bun:test'
import { addRole, EXECUTABLE, gatehouse, SECRET, serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'
import { startReceiver, verifyMessage } from '#test/webhooks/receiver.ts'

// Timeout in ms: each test starts processes, and the machine may be busy.
setDefaultTimeout(30_000)

test.each(['local', 'remote'] as const)(
  'RUN-35 webhooks listen forwards new events of a %s server, signed as a webhook does',
  async place => {
    await using server = await serveExecutable()
    await addRole(server, 'before')
    const receiver = startReceiver()
    const env = {
      local: { GATEHOUSE_DATA_DIR: server.data_dir },
      remote: { GATEHOUSE_CLIENT_SECRET: SECRET, GATEHOUSE_URL: server.url },
    }
    const from = { local: [], remote: ['--url', server.url, '--client', 'gatehouse-admin'] }
    const child = Bun.spawn(
      [EXECUTABLE, 'webhooks', 'listen', '--forward', receiver.url, '--events', 'role.*', ...from[place]],
      {
        cwd: server.data_dir,
        env: { PATH: process.env.PATH ?? '', ...env[place] },
        stdout: 'pipe',
        stderr: 'inherit',
      },
    )
    let said = ''
    const reading = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of child.stdout) said += decoder.decode(chunk)
    })()
    await until(() => said.includes('Secret: '))
    const secret = /whsec_\S+/.exec(said)?.[0] ?? ''
    await addRole(server, 'one')
    await addRole(server, 'two')
    await until(() => receiver.received.length >= 2)
    await until(() => said.split('\n').length > 4)
    child.kill()
    await child.exited
    await reading
    expect(receiver.received.map(({ body }) => body.type)).toEqual(['role.created', 'role.created'])
    for (const message of receiver.received) verifyMessage(secret, message)
    const { body } = await server.admin('GET', '/events?type=role.created&order=asc')
    expect(receiver.received.map(({ id }) => id)).toEqual(
      body.data.slice(1).map(({ id }: { id: string }) => id),
    )
    expect(said).toContain(`role.created ${receiver.received[0]?.id}: 204`)
    receiver.stop()
  },
)

test.each([
  [['--forward', 'file:///x'], '--forward: must be an http or https URL'],
  [['--forward', 'http://localhost:1/', '--secret', 'x'], '--secret: must be whsec_'],
  [['--forward', 'http://localhost:1/', '--url', 'https://id.example'], '--url: needs --client'],
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
