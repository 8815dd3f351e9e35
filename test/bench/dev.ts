/**
 * Compares the cost of `gatehouse dev` with that of a common fake server: `bun test/bench/dev.ts`.
 * Measures wall clock time, which is the time that a developer waits.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectGatehouse } from '#src/testing/controls.ts'
import { EXECUTABLE } from './gatehouse.ts'
import { median } from './load.ts'
import {
  freePort,
  freshDirectory,
  memoryOf,
  removeDirectory,
  type ServerProcess,
  start,
} from './server-process.ts'
import { against, number, print, table } from './table.ts'

const FAKE = fileURLToPath(
  new URL('../../node_modules/oauth2-mock-server/dist/oauth2-mock-server.mjs', import.meta.url),
)
const DISCOVERY = '/.well-known/openid-configuration'
const SETTLE = 1_000
const LIMITS = { ready: 150, memory: 75, mint: 5, reset: 10, token: 150 }

interface Development {
  ready: number
  /** Resident memory in MiB, a moment after the start. */
  memory: number
  mint: number
  reset?: number
  token?: number
}

const time = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const times = async (count: number, work: () => Promise<unknown>): Promise<number> => {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push(await time(work))
  return median(all)
}

type Starter = (directory: string) => Promise<ServerProcess>

const startGatehouse: Starter = async directory => {
  const port = await freePort()
  const command = [EXECUTABLE, 'dev', '--port', String(port), '--ready-file', join(directory, 'ready.json')]
  return start({ command, env: {}, port, directory, probe: DISCOVERY })
}

const startFake: Starter = async directory => {
  const port = await freePort()
  return start({ command: ['node', FAKE, '-p', String(port)], env: {}, port, directory, probe: DISCOVERY })
}

/**
 * Measures `rounds` starts of the server. Then measures the memory of the last server, and calls `use` with
 * that server.
 */
const measure = async (
  rounds: number,
  starter: Starter,
  use: (server: ServerProcess) => Promise<Omit<Development, 'ready' | 'memory'>>,
): Promise<Development> => {
  const ready: number[] = []
  const directory = await freshDirectory()
  for (let round = 1; round < rounds; round++) {
    const server = await starter(directory)
    ready.push(server.started_in)
    await server.stop()
  }
  const server = await starter(directory)
  ready.push(server.started_in)
  await Bun.sleep(SETTLE)
  const { rss: memory } = memoryOf(server.pid)
  const used = await use(server)
  await server.stop()
  await removeDirectory(directory)
  return { ready: median(ready), memory, ...used }
}

const useGatehouse =
  (rounds: number) =>
  async ({ directory, port }: ServerProcess) => {
    const { control_token } = JSON.parse(readFileSync(join(directory, 'ready.json'), 'utf8'))
    const controls = connectGatehouse({ url: `http://127.0.0.1:${port}`, control_token })
    const mint = await times(50 * rounds, () => controls.mint({ user: 'alice' }))
    const resets: number[] = []
    for (let i = 0; i < 10 * rounds; i++) {
      await controls.users.put({ username: 'guest', email: 'guest@example.com' })
      await controls.mint({ user: 'guest' })
      resets.push(await time(() => controls.reset()))
    }
    return { mint, reset: median(resets), token: await offlineToken(rounds) }
  }

/** Measures a whole command on the data directory of a stopped server. */
const offlineToken = async (rounds: number): Promise<number> => {
  const directory = await freshDirectory()
  const data_dir = join(directory, 'data')
  const port = await freePort()
  const command = [EXECUTABLE, 'dev', '--port', String(port), '--data-dir', data_dir]
  const server = await start({ command, env: {}, port, directory, probe: DISCOVERY })
  await server.stop()
  const token = await times(rounds, async () => {
    const child = Bun.spawn([EXECUTABLE, 'token', '--data-dir', data_dir, '--user', 'alice'], {
      env: {},
      stdout: 'pipe',
    })
    const text = await new Response(child.stdout).text()
    if ((await child.exited) !== 0 || !text.startsWith('ey')) throw new Error('no token was printed')
  })
  await removeDirectory(directory)
  return token
}

const useFake =
  (rounds: number) =>
  async ({ port }: ServerProcess) => ({
    mint: await times(50 * rounds, async () => {
      const body = new URLSearchParams({ grant_type: 'client_credentials' })
      const answer = await fetch(`http://127.0.0.1:${port}/token`, { method: 'POST', body })
      if (!answer.ok) throw new Error(`the fake answered ${answer.status}`)
      await answer.json()
    }),
  })

export const printDevelopment = async (rounds: number): Promise<void> => {
  const ours = await measure(rounds, startGatehouse, useGatehouse(rounds))
  const fake = await measure(rounds, startFake, useFake(rounds))
  const names = {
    ready: 'ready, discovery answered, ms',
    memory: 'resident memory, MiB',
    mint: 'mint a token over HTTP, ms',
    reset: 'reset to the seed, ms',
    token: 'gatehouse token, offline, ms',
  }
  const rows = (Object.keys(names) as (keyof Development)[]).map(key => [
    names[key],
    number(ours[key], 1),
    against(ours[key], LIMITS[key]),
    number(fake[key], 1),
  ])
  print(`\n${table(['development', 'gatehouse dev', 'limit', 'oauth2-mock-server'], rows)}`)
}

if (import.meta.main) await printDevelopment(Number(process.argv[2] ?? 9))
