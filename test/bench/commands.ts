/**
 * Compares the CPU time of commands and of server starts with the CPU time of a bare executable. Each round
 * runs all commands and all starts. The time of a start ends at the server's first answer. The time of a
 * command ends with the process.
 * Usage: `bun run build`, then `bun test/bench/commands.ts [rounds]`.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { $ } from 'bun'
import { EXECUTABLE } from './gatehouse.ts'
import { median } from './load.ts'
import { cpuTime, freePort, freshDirectory, memoryOf, removeDirectory, start } from './server-process.ts'
import { number, print, table } from './table.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FAKE = join(ROOT, 'node_modules/oauth2-mock-server/dist/oauth2-mock-server.mjs')
const DISCOVERY = '/.well-known/openid-configuration'
/** Milliseconds after which the memory of a server is read. */
const SETTLE = 2_000

const BARE = 'console.log(1)'
const BARE_ELYSIA = `import { Elysia } from 'elysia'
const app = new Elysia().get('/readyz', () => 'ready')
Bun.serve({ port: Number(process.env.GATEHOUSE_PORT), fetch: app.fetch })
process.once('SIGTERM', () => process.exit(0))`

const directory = await freshDirectory()
const data_dir = join(directory, 'data')
const kept = join(directory, 'kept')

/** Builds a program as Gatehouse is built. */
const build = async (name: string, source: string): Promise<string> => {
  // The source file is below the repository, where the bundler finds the libraries.
  const [entry, executable] = [join(ROOT, `dist/bench-${name}.ts`), join(directory, name)]
  await Bun.write(entry, source)
  await $`${process.execPath} build --compile --bytecode --format=esm --minify --outfile ${executable} ${entry}`.quiet()
  await Bun.file(entry).delete()
  return executable
}

type Measure = () => Promise<number>
const idle: Record<string, number> = {}

const ofServer =
  (name: string, commandOf: (port: string) => string[], probe: string, settles = false): Measure =>
  async () => {
    const port = await freePort()
    const env = { GATEHOUSE_PORT: String(port), GATEHOUSE_DATA_DIR: data_dir }
    const server = await start({ command: commandOf(String(port)), env, port, directory, probe })
    const used = cpuTime([server.pid])
    if (settles && !idle[name]) {
      await Bun.sleep(SETTLE)
      idle[name] = memoryOf(server.pid).rss
    }
    await server.stop()
    return used / 1_000
  }

const ofCommand =
  (...command: string[]): Measure =>
  async () => {
    const child = Bun.spawn(command, { env: {}, stdout: 'ignore', stderr: 'ignore' })
    if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed`)
    return Number(child.resourceUsage()?.cpuTime.total) / 1_000
  }

const own = (...args: string[]): Measure => ofCommand(EXECUTABLE, ...args)
const serve = ofServer('serve', () => [EXECUTABLE, 'serve'], '/readyz', true)
const [bare, elysia] = [await build('bare', BARE), await build('elysia', BARE_ELYSIA)]
const required = await build(
  'required',
  await Bun.file(new URL('./required-token.mjs', import.meta.url)).text(),
)
// Makes the keys and the data that the measured commands use.
await ofServer('first start', () => [EXECUTABLE, 'serve'], '/readyz', true)()
await ofServer('kept', port => [EXECUTABLE, 'dev', '--port', port, '--data-dir', kept], '/readyz')()
using ready = Bun.serve({ port: 0, fetch: () => new Response() })

const measures: Record<string, Measure> = {
  'bare Bun': ofCommand(bare),
  'bare Elysia, /readyz': ofServer('elysia', () => [elysia], '/readyz', true),
  'oauth2-mock-server, discovery': ofServer('fake', port => ['node', FAKE, '-p', port], DISCOVERY),
  '--version': own('--version'),
  healthcheck: own('healthcheck', '--url', `http://127.0.0.1:${ready.port}`),
  guide: own('guide', 'commands'),
  token: own('token', '--data-dir', kept, '--user', 'alice'),
  'required parts of token': ofCommand(required, kept),
  'serve with keys, /readyz': serve,
  'dev, discovery': ofServer('dev', port => [EXECUTABLE, 'dev', '--port', port], DISCOVERY),
  'exec true': own('exec', '--', '/bin/true'),
}

const found: Record<string, number[]> = {}
for (let round = 0; round < Number(process.argv[2] ?? 9); round++)
  for (const [name, measure] of Object.entries(measures)) {
    found[name] ??= []
    found[name].push(await measure())
  }
const [unit = Number.NaN] = Object.values(found).map(median)
const rows = Object.entries(found).map(([name, times]) => [
  name,
  number(median(times), 1),
  number(median(times) / unit, 1),
])
print(table(['CPU time until the end or the first answer', 'ms', 'of bare Bun'], rows))
print(
  `idle: serve ${number(idle.serve)} MiB, after a first start ${number(idle['first start'])}, bare Elysia ${number(idle.elysia)} MiB`,
)
await removeDirectory(directory)
process.exit(0)
