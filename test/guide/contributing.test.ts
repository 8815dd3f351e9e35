/** Checks the commands that the contributing guide names. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { scripts } from '../../package.json'

const root = join(import.meta.dir, '../..')
const read = (path: string): Promise<string> => Bun.file(join(root, path)).text()
const documents = ['README.md', '.github/CONTRIBUTING.md', 'src/README.md', 'templates/guide/install.md']

test('each script that a document names exists', async () => {
  for (const path of documents) {
    const named = [...(await read(path)).matchAll(/bun(?:@[\d.]+)? run ([a-z:]+)/g)].map(([, name]) => name)
    expect([path, named.filter(name => !Object.hasOwn(scripts, name ?? ''))]).toEqual([path, []])
  }
})

test('CONTRIBUTING lists the Debian packages that CI installs', async () => {
  const [, installed = ''] = /^packages="([^"]+)"$/m.exec(await read('.ci/run')) ?? []
  const [, told = ''] = /apt-get install ([^`]+)```/.exec(await read('.github/CONTRIBUTING.md')) ?? []
  expect(installed.split(' ').length).toBeGreaterThan(5)
  expect(told.split(/[\s\\]+/).filter(Boolean)).toEqual(installed.split(' '))
})

test('every link in the documents has a target', async () => {
  for (const path of [...documents, '.github/SECURITY.md', '.github/CHANGELOG.md']) {
    const links = [...(await read(path)).matchAll(/(?:\]\(|src(?:set)?=")([^)"#]+)/g)].map(
      ([, link = '']) => link,
    )
    const dead = await Promise.all(
      links.map(async link => {
        const target = Bun.file(join(root, path, '..', link))
        return /^https:/.test(link) || (await target.stat().catch(() => undefined)) ? [] : [link]
      }),
    )
    expect([path, dead.flat()]).toEqual([path, []])
  }
})

test('README has at most 8 kB', () => {
  expect(Bun.file(join(root, 'README.md')).size).toBeLessThanOrEqual(8_000)
})

test('the workflow runs the same checks as a merge into main', async () => {
  const { jobs, permissions } = parse(await read('.github/workflows/ci.yml'))
  expect(jobs.test.steps.map(({ run }: { run?: string }) => run).filter(Boolean)).toEqual(['.ci/run'])
  expect(permissions).toEqual({ contents: 'read' })
})

test('each question of an issue form has a label and a unique id', async () => {
  for (const form of ['bug', 'feature']) {
    const { name, description, body } = parse(await read(`.github/ISSUE_TEMPLATE/${form}.yml`))
    expect([name, description]).not.toContain(undefined)
    const questions = body.filter(({ type }: { type: string }) => type !== 'markdown')
    const ids = questions.map(({ id }: { id: string }) => id)
    expect(new Set(ids).size).toBe(questions.length)
    for (const { attributes } of questions) expect(attributes.label).toBeString()
  }
})

test('bun run dev starts development mode', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const command = ['bun', 'run', '--silent', 'dev', '--port', '0', '--data-dir', data_dir]
  const child = Bun.spawn(command, { cwd: root, stdout: 'pipe', stderr: 'ignore' })
  let output = ''
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    output += chunk
    if (/\{"event":"ready".*\n/.test(output)) break
  }
  const { pid, control_token } = JSON.parse(/\{"event":"ready".*/.exec(output)?.[0] ?? '{}')
  expect(control_token).toBeString()
  process.kill(pid, 'SIGTERM')
  expect(await child.exited).toBe(0)
  rmSync(data_dir, { recursive: true })
})
