import { beforeAll, expect, test } from 'bun:test'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { casesFor } from './contract.ts'
import { targets } from './targets.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = `${root}dist/sdk-contract`

/** Packs the package and installs it, as a link, in the folder of the bundled runner. */
beforeAll(async () => {
  await run(['bun', 'run', 'build:sdk'])
  await rm(folder, { recursive: true, force: true })
  await mkdir(`${folder}/node_modules/@gatehouse`, { recursive: true })
  await symlink(`${root}dist/sdk`, `${folder}/node_modules/@gatehouse/resource-server`)
  const entrypoints = [`${import.meta.dir}/runner.ts`]
  const built = await Bun.build({ entrypoints, outdir: folder, target: 'node', packages: 'external' })
  expect(built.success).toBe(true)
}, 60_000)

async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}\n${out}\n${err}`)
  return out
}

const runner = `${folder}/runner.js`
const deno = [
  `${root}node_modules/.bin/deno`,
  'run',
  '--no-config',
  '--node-modules-dir=manual',
  '--no-lock',
  '-A',
]

test.each([
  ['Bun', ['bun', runner]],
  ['Node', ['node', runner]],
  ['Deno', [...deno, runner]],
])(
  'the packed resource server passes its contract under %s',
  async (_, command) => {
    const { passed, failed } = JSON.parse((await run(command)).trim().split('\n').at(-1) ?? '')
    expect(failed).toEqual([])
    expect(passed).toBe(targets.flatMap(casesFor).length)
  },
  120_000,
)
