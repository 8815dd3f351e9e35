import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readDevFile } from '#src/dev/dev-file.ts'
import { SeedError } from '#src/seed/read.ts'
import { start } from '#src/testing/start.ts'
import { freePort } from '#test/support/free-port.ts'

const newDataDir = (): string => join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'data')

/** A seed that only its application can refuse, because the role does not exist. */
const refused = { users: [{ username: 'bob', email: 'bob@example.com', roles: ['nothing'] }] }

test('a script ends when it has stopped its server', async () => {
  const start = join(import.meta.dir, '../../src/testing/start.ts')
  const script = `const { start } = await import(${JSON.stringify(start)})
    await (await start()).stop()
    console.log('stopped')
    setTimeout(() => console.log('still running'), 1000).unref()`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  expect(await new Response(child.stdout).text()).toBe('stopped\n')
  expect(await child.exited).toBe(0)
})

test.each(['gatehouse.db', 'master.key', 'server.json'])(
  'the data directory of a production server is refused by its %s, and stays as it is',
  async name => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
    writeFileSync(join(data_dir, name), 'of production')
    const started = start({ data_dir }).then(({ stop }) => stop())
    await expect(started).rejects.toThrow('not a development server')
    expect([readdirSync(data_dir), readFileSync(join(data_dir, name), 'utf8')]).toEqual([
      [name],
      'of production',
    ])
  },
)

test('after a refused seed the next start gets the port and the data directory', async () => {
  const data_dir = newDataDir()
  const port = freePort()
  await expect(start({ port, data_dir, seed: refused })).rejects.toThrow(SeedError)
  expect(readDevFile(data_dir)).toMatchObject({ pid: null, port, client_id: 'dev-service' })
  const started = await start({ port, data_dir })
  try {
    const { pid, control_token } = started
    expect(readDevFile(data_dir)).toMatchObject({ pid, port, control_token })
    const answer = await fetch(`${started.local_url}/dev/users`, {
      headers: { authorization: `Bearer ${control_token}` },
    })
    const { data } = (await answer.json()) as { data: { username: string }[] }
    expect(data.map(({ username }) => username)).toEqual(['alice', 'admin'])
  } finally {
    await started.stop()
  }
})

test('a server that other machines can reach keeps its credentials after a refused seed', async () => {
  const options = { data_dir: newDataDir(), url: 'http://id.example:8080', public_issuer: true }
  await expect(start({ ...options, seed: refused })).rejects.toThrow(SeedError)
  const { credentials } = readDevFile(options.data_dir) ?? {}
  const started = await start(options)
  await started.stop()
  expect(started.credentials).toEqual(credentials as NonNullable<typeof credentials>)
})
