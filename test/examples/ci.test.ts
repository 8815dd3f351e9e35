/** Runs the GitHub Action and the templates for other CI systems, as the runners of these systems do. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'bun'
import { parse } from 'yaml'
import type { Json } from '#test/support/app.ts'
import { EXECUTABLE, gatehouse } from '#test/support/executable.ts'

const action = join(import.meta.dir, '../../.github/actions/setup')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Makes an uncompressed archive with the layout of `bun run package`. `fake` replaces the executable. */
const archive = async (name: string, fake?: string): Promise<{ file: string; sha256: string }> => {
  await gatehouse(['--version'])
  const [file, tree] = [join(folder, `${name}.tar`), join(folder, name)]
  mkdirSync(join(tree, 'gatehouse-1'), { recursive: true })
  const path = join(tree, 'gatehouse-1/gatehouse')
  if (fake) writeFileSync(path, fake)
  else copyFileSync(EXECUTABLE, path)
  chmodSync(path, 0o755)
  await $`tar -cf ${file} -C ${tree} gatehouse-1`
  return { file, sha256: createHash('sha256').update(readFileSync(file)).digest('hex') }
}

let good: Awaited<ReturnType<typeof archive>>
beforeAll(async () => {
  good = await archive('good')
}, 60_000)

/** Runs the steps of the action with these inputs, in a job with these variables. */
const act = async (inputs: Record<string, string>, job: Record<string, string> = {}) => {
  const { runs, inputs: declared }: Json = parse(readFileSync(join(action, 'action.yml'), 'utf8'))
  const temp = mkdtempSync(join(folder, 'runner-'))
  const inputOf = (text: string): string =>
    text.replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, name) => inputs[name] ?? declared[name].default ?? '')
  const [{ run, env }] = runs.steps
  const given = Object.entries<string>(env).map(([name, text]) => [name, inputOf(text)] as const)
  const child = Bun.spawn(['bash', '-c', run], {
    env: {
      ...job,
      ...Object.fromEntries(given),
      PATH: process.env.PATH ?? '',
      GITHUB_ACTION_PATH: action,
      RUNNER_TEMP: temp,
      GITHUB_ENV: join(temp, 'env'),
      GITHUB_PATH: join(temp, 'path'),
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr, temp }
}

test('the action starts a server that outlives its step, exports its variables and masks its secrets', async () => {
  const { file, sha256 } = good
  const { code, stdout, stderr, temp } = await act({ archive: file, sha256 })
  expect([code, stderr]).toEqual([0, ''])
  const lines = readFileSync(join(temp, 'env'), 'utf8').trim().split('\n')
  const env = Object.fromEntries(lines.map(line => line.split(/=(.*)/s, 2)))
  expect(Object.keys(env).sort()).toEqual([
    ...['SERVICE_CLIENT_ID', 'SERVICE_CLIENT_SECRET', 'SERVICE_DEV_TOKEN', 'SERVICE_REALM', 'SERVICE_URL'],
  ])
  expect(stdout.trim().split('\n').sort()).toEqual(
    [env.SERVICE_CLIENT_SECRET, env.SERVICE_DEV_TOKEN].map(secret => `::add-mask::${secret}`).sort(),
  )
  const path = readFileSync(join(temp, 'path'), 'utf8').trim()
  const token = await $`gatehouse token --user alice`
    .env({ ...env, PATH: `${path}:${process.env.PATH}` })
    .text()
  expect(token.trim().split('.')).toHaveLength(3)
  // A real runner ends the processes of a job. Here the test ends the server.
  process.kill(Number(readFileSync(join(temp, 'gatehouse/pid'), 'utf8')))
}, 30_000)

test('the action changes no other variable of the job, and clears its secret for a client without one', async () => {
  const { file } = good
  const job = {
    SERVICE_ACCOUNT_JSON: '{ "type":\nSERVICE_URL=http://elsewhere.example\n}',
    SERVICE_CLIENT_SECRET: 'of another client',
  }
  const { code, stdout, temp } = await act({ archive: file, options: '--client dev-web' }, job)
  process.kill(Number(readFileSync(join(temp, 'gatehouse/pid'), 'utf8')))
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^::add-mask::\S+\n$/)])
  expect(readFileSync(join(temp, 'env'), 'utf8')).toMatch(
    /^SERVICE_URL=http:\/\/localhost:\d+\nSERVICE_CLIENT_ID=dev-web\nSERVICE_CLIENT_SECRET=\nSERVICE_REALM=org_default\nSERVICE_DEV_TOKEN=\S+\n$/,
  )
}, 30_000)

test('the action refuses another checksum, a URL without a checksum or an answer, and a server that does not start', async () => {
  const { file } = await archive('other', '#!/bin/sh\necho "gatehouse: unknown option" >&2\nexit 2\n')
  const wrong = await act({ archive: file, sha256: '0'.repeat(64) })
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining(`gatehouse: ${file} has another checksum`),
  ])
  expect(await act({ archive: 'https://localhost/gatehouse.tar.gz' })).toMatchObject({
    code: 1,
    stderr: 'gatehouse: sha256 is required for an archive from a URL\n',
  })
  const nowhere = 'http://127.0.0.1:1/gatehouse.tar.gz'
  const lost = await act({ archive: nowhere, sha256: '0'.repeat(64) })
  expect([lost.code, lost.stderr]).toEqual([
    1,
    expect.stringMatching(new RegExp(`^curl: [^\\n]+\\ngatehouse: ${nowhere} cannot be downloaded\\n$`)),
  ])
  expect(existsSync(join(lost.temp, 'env'))).toBe(false)
  expect(await act({ archive: file })).toMatchObject({ code: 1, stderr: 'gatehouse: unknown option\n' })
}, 30_000)

test('the GitLab job gets a verified executable and runs its script with it', async () => {
  const jobs: Json = parse(readFileSync(join(import.meta.dir, 'gitlab-ci.yml'), 'utf8'))
  const { file, sha256 } = good
  using server = Bun.serve({ port: 0, fetch: () => new Response(Bun.file(file)) })
  const at = mkdtempSync(join(folder, 'gitlab-'))
  const job = async (checksum: string) => {
    const script = [
      ...jobs['.gatehouse'].before_script,
      'gatehouse exec -- sh -c "gatehouse token --user alice"',
    ]
    const child = Bun.spawn(['bash', '-euo', 'pipefail', '-c', script.join('\n')], {
      cwd: at,
      env: {
        PATH: process.env.PATH ?? '',
        IDENTITY_SERVER_ARCHIVE: `${server.url}gatehouse.tar.gz`,
        IDENTITY_SERVER_SHA256: checksum,
      },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const stdout = await new Response(child.stdout).text()
    return { code: await child.exited, stdout }
  }
  expect(await job('0'.repeat(64))).toEqual({
    code: 1,
    stdout: expect.stringContaining('gatehouse.tar.gz: FAILED'),
  })
  const { code, stdout } = await job(sha256)
  expect([code, stdout.trim().split('.').length]).toEqual([0, 3])
  expect(jobs.test).toMatchObject({
    extends: '.gatehouse',
    script: expect.arrayContaining([expect.stringMatching(/^gatehouse exec -- /)]),
  })
}, 30_000)
