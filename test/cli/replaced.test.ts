import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXECUTABLE, gatehouse, serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

for (const [what, change] of [
  // An upgrade writes the new executable to a new file, and renames this file to the path of the old
  // executable.
  [
    'replaced',
    (path: string) => {
      writeFileSync(`${path}.new`, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
      renameSync(`${path}.new`, path)
    },
  ],
  ['removed', (path: string) => rmSync(path)],
] as const)
  test(`RUN-41 a server whose executable was ${what} reads XML and makes backups`, async () => {
    await gatehouse(['--version'])
    const path = join(folder, what)
    copyFileSync(EXECUTABLE, path)
    await using server = await serveExecutable({}, undefined, path)
    change(path)
    const provider = { type: 'saml', alias: 'new', name: 'New', metadata_xml: '<a/>' }
    const { status, body } = await server.admin('POST', '/identity-providers', provider)
    expect([status, body.details[0].message]).toEqual([422, 'The metadata contains no identity provider.'])
    expect((await server.admin('POST', '/backups')).status).toBe(202)
    const backups = async () => (await server.admin('GET', '/backups')).body
    await until(async () => !(await backups()).running)
    expect((await backups()).data).toHaveLength(1)
  }, 60_000)
