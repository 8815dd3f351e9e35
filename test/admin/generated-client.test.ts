import { expect, test } from 'bun:test'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ADMIN_SECRET, startApp } from '#test/support/app.ts'

const ROOT = join(import.meta.dir, '../..')
const FIXTURES = join(ROOT, 'test/fixtures/openapi')

test('API-27 a program that uses generated types compiles and manages users', async () => {
  const app = await startApp()
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-client-'))
  try {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await cp(join(FIXTURES, 'program.txt'), join(folder, 'program.ts'))
    await Bun.write(join(folder, 'openapi.json'), await app.call('/api/v1/openapi.json'))
    await Bun.$`bun ${FIXTURES}/generate.ts ${folder}/openapi.json ${folder}/api.d.ts`.cwd(ROOT).quiet()
    const flags = ['--noEmit', '--strict', '--module', 'preserve', '--target', 'esnext', '--skipLibCheck']
    const checked = await Bun.$`${ROOT}/node_modules/.bin/tsc ${flags} program.ts`
      .cwd(folder)
      .nothrow()
      .quiet()
    expect(checked.stdout.toString()).toBe('')
    const { run } = await import(join(folder, 'program.ts'))
    const user_attributes = [{ name: 'team', type: 'string', searchable: true }]
    await app.admin('PUT', '/organizations/org_default', { settings: { user_attributes } })
    const users = await run(app.fetch, await app.tokenOf('gatehouse-admin', ADMIN_SECRET))
    expect(users.map(({ first_name }: { first_name: string }) => first_name)).toEqual([
      'Ada',
      'Ada',
      'Ada',
      'Augusta',
    ])
  } finally {
    await rm(folder, { recursive: true })
  }
})
